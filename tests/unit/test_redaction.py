"""Secrets stay out of every error's words, whoever wrote them."""

from __future__ import annotations

import pickle

import pytest

from airflow_provider_streams import redaction
from airflow_provider_streams.errors import InvalidRequest, StreamsError, SystemUnavailable

SECRET = 'hid"den/tok\\en ä'


def test_an_error_shows_no_known_secret_however_it_is_written() -> None:
    redaction.conceal(SECRET)
    forms = (SECRET, repr(SECRET), "hid%22den%2Ftok%5Cen%20%C3%A4", 'hid\\"den/tok\\\\en \\u00e4')
    for form in forms:
        error = SystemUnavailable("broker", f"it said <{form}>")
        assert "hid" not in str(error) + repr(error)
        assert "***" in str(error)
        assert str(pickle.loads(pickle.dumps(StreamsError(f"a {form}")))).count("***") == 1  # noqa: S301


def test_a_secret_that_holds_another_is_replaced_whole() -> None:
    for secret in ("hidden", "hidden-and-more"):
        redaction.conceal(secret)
    assert str(InvalidRequest("got hidden-and-more, hidden")) == "got ***, ***"


@pytest.mark.parametrize("word", ["", "a", "the"])
def test_words_are_left(word: str) -> None:
    redaction.conceal(word)
    assert str(InvalidRequest("the text")) == "the text"


def test_who_listens_hears_of_each_secret_once() -> None:
    heard: list[str] = []
    redaction.on_secret(heard.append)
    try:
        for secret in ("hidden-1", "hidden-2", "hidden-1"):
            redaction.conceal(secret)
        redaction.remember("hidden-3")
    finally:
        redaction._listeners.remove(heard.append)
    assert heard == ["hidden-1", "hidden-2"]


def test_what_is_remembered_is_bounded() -> None:
    for number in range(3000):
        redaction.remember(f"hidden-{number}")
    assert len(redaction._known) <= 1000
    assert "hidden-2999" not in str(InvalidRequest("hidden-2999"))
