"""What is said of permissions."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from airflow_provider_streams.doctor.grants import check_grants
from airflow_provider_streams.errors import NotAuthorized, SourceNotFound, SystemUnavailable
from airflow_provider_streams.systems.diagnosis import Grant
from airflow_provider_streams.systems.pravega.operations.diagnosis import made_at
from airflow_provider_streams.testing.fake import FakeSource

SOURCE = FakeSource("numbers")


class Asked:
    """A system with these grants."""

    def __init__(self, *grants):
        self._grants = grants

    def grants(self, source):
        assert source is SOURCE
        return self._grants


def fail(error):
    raise error


def levels(*grants):
    return {one.check: one.level for one in check_grants(Asked(*grants), SOURCE)}


def test_what_was_seen_is_granted():
    (one,) = check_grants(Asked(Grant("read", "READ", lambda: "it answered")), SOURCE)
    assert (one.level, one.says) == ("ok", "granted: it answered")


def test_a_refusal_is_an_error_only_if_every_reader_needs_it():
    refuse = lambda: fail(NotAuthorized("broker", "read"))  # noqa: E731
    assert levels(Grant("read", "READ", refuse), Grant("hold", "X", refuse, is_needed=False)) == {
        "read": "error",
        "hold": "warning",
    }


def test_what_cannot_be_seen_is_never_called_ok():
    assert levels(Grant("hold", "X", lambda: "in part", unseen=lambda: "the rest")) == {"hold": "skipped"}
    assert levels(Grant("hold", "X", lambda: fail(SystemUnavailable("b", "gone")))) == {"hold": "warning"}


def test_a_source_that_is_missing_is_named_once():
    missing = Grant("plan", "X", lambda: fail(SourceNotFound("numbers")))
    assert levels(missing, missing) == {"source": "error"}


def token(claims):
    text = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"x.{text}.x"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (token({"iat": 1763632800}), datetime(2025, 11, 20, 10, tzinfo=UTC)),
        (token({"exp": 1}), None),
        (token({"iat": "soon"}), None),
        (token([1]), None),
        ("", None),
        ("a.b.c", None),
    ],
)
def test_a_token_says_when_it_was_made(text, made):
    assert made_at(text) == made
