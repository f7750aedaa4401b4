"""A secret in a plan has a form that one pattern finds, whatever it holds."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.spark.datasource import option_redaction
from airflow_provider_streams.spark.datasource.options import ReadOptions
from airflow_provider_streams.systems.registry import load_system


@given(st.text(), st.text(alphabet='" \n,}>)'))
def test_the_pattern_finds_it_whole_and_it_comes_back(secret: str, after: str) -> None:
    hidden = option_redaction.mask_secret(secret)
    assert re.sub(option_redaction.PATTERN, "", f"token: {hidden}{after}") == f"token: {after}"
    assert option_redaction.unmask_secret(hidden) == secret


@given(st.text().filter(lambda text: not text.startswith("streams-secret:")))
def test_another_text_is_left(text: str) -> None:
    assert option_redaction.unmask_secret(text) == text


def test_the_source_reads_a_veiled_option() -> None:
    options = ReadOptions.parse(load_system("pulsar"), {"token": option_redaction.mask_secret("hidden"), "topic": "t"})
    assert options.system == {"token": "hidden", "topic": "t"}
    both = {"service.url": "pulsar://a", "serviceUrl": option_redaction.mask_secret("pulsar://a")}
    assert ReadOptions.parse(load_system("pulsar"), both).system == {"service_url": "pulsar://a"}


@pytest.mark.parametrize("given", [None, "", "user-\\d+|x"])
def test_what_a_session_hides_already_stays_hidden(given: str | None) -> None:
    conf = {} if given is None else {option_redaction.REDACTION: given}
    session = SimpleNamespace(conf=SimpleNamespace(get=conf.get, set=conf.__setitem__))
    option_redaction.hide(session)
    option_redaction.hide(session)
    hidden = re.compile(conf[option_redaction.REDACTION])
    assert hidden.sub("", f"a {option_redaction.mask_secret('s')} b") == "a  b"
    assert bool(hidden.fullmatch("user-77")) == bool(given)
    assert conf[option_redaction.REDACTION].count(option_redaction.PATTERN) == 1
