"""A secret in a plan has a form that one pattern finds, whatever it holds."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.spark import veil
from airflow_provider_streams.spark.options import ReadOptions
from airflow_provider_streams.systems.registry import load_system


@given(st.text(), st.text(alphabet='" \n,}>)'))
def test_the_pattern_finds_it_whole_and_it_comes_back(secret: str, after: str) -> None:
    hidden = veil.veiled(secret)
    assert re.sub(veil.PATTERN, "", f"token: {hidden}{after}") == f"token: {after}"
    assert veil.unveiled(hidden) == secret


@given(st.text().filter(lambda text: not text.startswith("streams-secret:")))
def test_another_text_is_left(text: str) -> None:
    assert veil.unveiled(text) == text


def test_the_source_reads_a_veiled_option() -> None:
    options = ReadOptions.parse(load_system("pulsar"), {"token": veil.veiled("hidden"), "topic": "t"})
    assert options.system == {"token": "hidden", "topic": "t"}
    both = {"service.url": "pulsar://a", "serviceUrl": veil.veiled("pulsar://a")}
    assert ReadOptions.parse(load_system("pulsar"), both).system == {"service_url": "pulsar://a"}


@pytest.mark.parametrize("given", [None, "", "user-\\d+|x"])
def test_what_a_session_hides_already_stays_hidden(given: str | None) -> None:
    conf = {} if given is None else {veil.REDACTION: given}
    session = SimpleNamespace(conf=SimpleNamespace(get=conf.get, set=conf.__setitem__))
    veil.hide(session)
    veil.hide(session)
    hidden = re.compile(conf[veil.REDACTION])
    assert hidden.sub("", f"a {veil.veiled('s')} b") == "a  b"
    assert bool(hidden.fullmatch("user-77")) == bool(given)
    assert conf[veil.REDACTION].count(veil.PATTERN) == 1
