from __future__ import annotations

from dataclasses import dataclass

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.connection import endpoint_fields
from airflow_provider_streams.systems.connection.option import Option

OPTIONS = (
    Option("url", "where", aliases=("service.url",)),
    Option("hosts", "which", kind="names"),
    Option("verify", "whether", kind="flag"),
    Option("wait_seconds", "how long", kind="seconds"),
)


@dataclass(frozen=True)
class Endpoint:
    url: str = ""
    hosts: tuple[str, ...] = ()
    verify: bool = True
    wait_seconds: float = 30.0


def test_an_option_s_own_name_wins_over_its_aliases():
    assert endpoint_fields.parse({"service.URL": "alias", "Url": "name"}, OPTIONS) == {"url": "name"}


def test_empty_settings_count_as_not_given_and_unknown_ones_are_ignored():
    assert endpoint_fields.parse({"url": "", "service.url": " x ", "other": "y"}, OPTIONS) == {"url": "x"}


@pytest.mark.parametrize("endpoint", [Endpoint(), Endpoint("x", ("a", "b"), verify=False, wait_seconds=0.5)])
def test_texts_are_parsed_to_the_endpoint_they_came_from(endpoint):
    assert Endpoint(**endpoint_fields.parse(endpoint_fields.texts(endpoint), OPTIONS)) == endpoint


def test_defaults_are_left_out_of_texts():
    assert endpoint_fields.texts(Endpoint(verify=False)) == {"verify": "false"}


@pytest.mark.parametrize("parser", [endpoint_fields.flag, endpoint_fields.seconds, endpoint_fields.count])
def test_a_malformed_setting_is_refused_by_its_name(parser):
    with pytest.raises(InvalidRequest, match=r"the_name must be .*, got 'soon'"):
        parser("the_name", "soon")
