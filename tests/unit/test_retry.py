from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_streams import errors
from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.errors import StartTrimmed, StreamsError, SystemUnavailable, WindowNotReady
from airflow_provider_streams.retry import (
    error_event,
    error_from_event,
    stream_retry_policy,
    terminal,
    terminal_errors,
)
from tests.airflow_versions import needs

TRIMMED = StartTrimmed("orders-0", "3:0", "5:0")
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StreamsError)]


def test_a_terminal_error_is_the_typed_error_and_stops_airflows_retries():
    with pytest.raises(StartTrimmed) as caught, terminal_errors():
        raise TRIMMED
    assert isinstance(caught.value, AirflowFailException)
    assert (caught.value.shard, str(caught.value)) == ("orders-0", str(TRIMMED))
    assert type(caught.value).__name__ == "StartTrimmed"
    assert caught.value.__cause__ is TRIMMED


def test_a_passing_error_stays_as_it_is():
    with pytest.raises(SystemUnavailable) as caught, terminal_errors():
        raise SystemUnavailable("broker", "restarting")
    assert not isinstance(caught.value, AirflowFailException)


def test_errors_of_others_stay_as_they_are():
    with pytest.raises(ZeroDivisionError), terminal_errors():
        _ = 1 / 0


def test_turning_terminal_twice_changes_nothing():
    once = terminal(TRIMMED)
    with pytest.raises(StartTrimmed) as caught, terminal_errors():
        raise once
    assert caught.value is once
    assert type(terminal(once)) is type(once)


def test_a_terminal_error_can_be_pickled():
    again = pickle.loads(pickle.dumps(terminal(TRIMMED)))  # noqa: S301 - our own bytes
    assert (type(again), str(again), again.shard) == (type(terminal(TRIMMED)), str(TRIMMED), "orders-0")


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_travels_through_a_triggers_event(kind):
    error = kind.__new__(kind)
    Exception.__init__(error, "what happened")
    again = error_from_event(error_event(error))
    assert isinstance(again, kind)
    assert isinstance(again, AirflowFailException)
    assert str(again) == str(error.name_doctor())
    assert str(again).startswith("what happened")


def test_an_event_of_another_release_is_still_an_error():
    event = {"status": "error", "error_type": "NoSuchError", "message": "m"}
    assert isinstance(error_from_event(event), StreamsError)
    assert isinstance(error_from_event({**event, "error_type": "annotations"}), StreamsError)


@needs(Feature.RETRY_POLICIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_retry_policy_says_of_every_error_what_its_class_says(kind):
    from airflow.sdk.definitions.retry_policy import RetryAction

    error = kind.__new__(kind)
    Exception.__init__(error, "m")
    decision = stream_retry_policy(timedelta(minutes=2)).evaluate(error, 1, 3)
    assert decision.action == (RetryAction.RETRY if kind.retryable else RetryAction.FAIL)
    assert decision.retry_delay == (timedelta(minutes=2) if kind.retryable else None)


@needs(Feature.RETRY_POLICIES)
def test_the_retry_policy_leaves_other_errors_to_the_task():
    from airflow.sdk.definitions.retry_policy import RetryAction

    assert stream_retry_policy().evaluate(ZeroDivisionError(), 1, 3).action == RetryAction.DEFAULT


@needs(Feature.RETRY_POLICIES)
def test_the_retry_policy_survives_dag_serialization():
    from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction

    again = ExceptionRetryPolicy.deserialize(stream_retry_policy().serialize())
    assert again.evaluate(WindowNotReady("s", "w", "r"), 1, 3).action == RetryAction.RETRY


@pytest.mark.skipif(has(Feature.RETRY_POLICIES), reason="this Airflow has retry policies")
def test_without_retry_policies_there_is_none():
    assert stream_retry_policy(timedelta(minutes=1)) is None
