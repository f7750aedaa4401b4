"""Secrets stay out of every error's words, even if a server or a library wrote them."""

from __future__ import annotations

import base64
import html
import json
import pickle
import re
import traceback
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams import redaction
from airflow_provider_streams.errors import InvalidRequest, StreamsError, SystemUnavailable

SECRET = 'hid"den/tok\\en ä'


def test_an_error_shows_no_known_secret_however_it_is_written() -> None:
    redaction.register_secret(SECRET)
    forms = (SECRET, repr(SECRET), "hid%22den%2Ftok%5Cen%20%C3%A4", 'hid\\"den/tok\\\\en \\u00e4')
    for form in forms:
        error = SystemUnavailable("broker", f"it said <{form}>")
        assert "hid" not in str(error) + repr(error)
        assert "***" in str(error)
        assert str(pickle.loads(pickle.dumps(StreamsError(f"a {form}")))).count("***") == 1  # noqa: S301


def raised(cause: BaseException, *, says_from: bool) -> StreamsError:
    def fail() -> None:
        raise cause

    try:
        try:
            fail()
        except Exception as error:
            if says_from:
                raise InvalidRequest("ours") from error
            raise InvalidRequest("ours")  # noqa: B904 - so that the other one is its context
    except StreamsError as error:
        return error


class Foreign(ValueError):
    """Of a library."""


@pytest.mark.parametrize("says_from", [True, False])
def test_a_traceback_shows_no_secret_of_causes(says_from: bool) -> None:  # noqa: FBT001 - a parameter
    redaction.register_secret("hidden-cause")
    first, last = KeyError("hidden-cause"), Foreign("between")
    last.__cause__ = first
    last.add_note("see hidden-cause")
    top = OSError("clean")
    top.__context__ = last
    error = raised(top, says_from=says_from)
    said = "".join(traceback.format_exception(error))
    assert "hidden-cause" not in said
    assert [text in said for text in ("KeyError", "test_redaction.Foreign: between", "see ***", "OSError: clean")] == [
        True
    ] * 4
    found = error.__cause__ if says_from else error.__context__
    assert found is top
    assert "".join(traceback.format_exception(error)) == said


@pytest.mark.parametrize("says_from", [True, False])
def test_causes_without_secrets_stay_as_they_are(says_from: bool) -> None:  # noqa: FBT001 - a parameter
    redaction.register_secret("hidden-cause")
    first, last = KeyError("clean"), ValueError("clean")
    last.__context__ = first
    error = raised(last, says_from=says_from)
    assert last in (error.__cause__, error.__context__)
    assert last.__context__ is first
    assert error.__suppress_context__ == says_from


def test_a_group_that_holds_a_secret_is_shown_by_its_own_words() -> None:
    redaction.register_secret("hidden-cause")
    group = ExceptionGroup("several", [ValueError("hidden-cause")])
    said = "".join(traceback.format_exception(raised(group, says_from=True)))
    assert "several (1 sub-exception)" in said
    assert "hidden-cause" not in said


def test_a_secret_that_holds_another_is_replaced_whole() -> None:
    for secret in ("hidden", "hidden-and-more"):
        redaction.register_secret(secret)
    assert str(InvalidRequest("got hidden-and-more, hidden")) == "got ***, ***"


@pytest.mark.parametrize("word", ["", "a", "the"])
def test_words_are_left(word: str) -> None:
    redaction.register_secret(word)
    assert str(InvalidRequest("the text")) == "the text"


def test_who_listens_hears_of_each_secret_once() -> None:
    heard: list[str] = []
    redaction.on_secret(heard.append)
    try:
        for secret in ("hidden-1", "hidden-2", "hidden-1"):
            redaction.register_secret(secret)
        redaction.remember("hidden-3")
    finally:
        redaction._listeners.remove(heard.append)
    assert heard == ["hidden-1", "hidden-2"]


def test_what_is_remembered_is_bounded() -> None:
    for number in range(3000):
        redaction.remember(f"hidden-{number}")
    assert len(redaction._known) <= 1000
    assert "hidden-2999" not in str(InvalidRequest("hidden-2999"))


def test_the_longer_of_two_others_is_replaced_whole() -> None:
    assert redaction.redact("abcd-efgh", ["abcd", "abcd-efgh"]) == "***"


@st.composite
def echoes(draw: st.DrawFn) -> tuple[str, str, str]:
    """A secret, how a server writes it, and the words before and after it."""
    secret = draw(
        st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="<>"), min_size=redaction.SHORTEST, max_size=80
        )
    )
    write = draw(
        st.sampled_from(
            [
                str,
                quote,
                quote_plus,
                html.escape,
                lambda text: re.sub("%..", lambda hexes: hexes[0].lower(), quote(text, safe="")),
                lambda text: json.dumps(text)[1:-1],
                lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
            ]
        )
    )
    return secret, write(secret), draw(st.sampled_from(["", "<"]))


@given(echoes())
def test_no_way_to_write_a_secret_is_shown(echo: tuple[str, str, str]) -> None:
    secret, written, words = echo
    assert redaction.redact(f"{words}{written}>", [secret]) == f"{words}***>"


@given(
    st.binary(min_size=8, max_size=60),
    st.binary(max_size=5),
    st.binary(max_size=5),
    st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
)
def test_base64_shows_no_secret_wherever_it_begins(
    data: bytes, before: bytes, after: bytes, encode: Callable[[bytes], bytes]
) -> None:
    secret = data.hex()
    shown = redaction.redact(encode(before + secret.encode() + after).decode(), [secret])
    assert "***" in shown
    assert len(shown) <= 3 + 4 * (len(before) + len(after) + 4), "only the ends, which the neighbours share, are left"


@given(
    st.text("abcdefghijklmnopqrstuvwxyz._-", min_size=16, max_size=300),
    st.data(),
    st.text("ABC ", max_size=40),
    st.text("ABC ", max_size=40),
)
def test_of_a_long_secret_no_piece_is_shown(secret: str, data: st.DataObject, before: str, after: str) -> None:
    start = data.draw(st.integers(0, len(secret) - 16))
    end = data.draw(st.integers(start + 16, len(secret)))
    assert redaction.redact(f"{before}{secret[start:end]}{after}", [secret]) == f"{before}***{after}"


def test_shorter_pieces_are_words() -> None:
    secret = "the-broker-is-away-for-now"
    assert redaction.redact("the-broker-is-a.. -broker-is-away", [secret]) == "the-broker-is-a.. -broker-is-away"


def test_a_token_that_is_cut_stays_out_of_errors() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9." + "".join(map(str, range(200)))
    redaction.register_secret(token)
    assert str(SystemUnavailable("broker", f"refused {token[:100]}..")).startswith(
        "broker is not available: refused ***..."
    )
    assert str(InvalidRequest(f"..{token[60:]} and {token[5:40]}")) == "..*** and ***"
