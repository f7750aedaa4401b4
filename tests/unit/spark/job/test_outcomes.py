"""The failure of a job's only window is raised as it was, by whichever process it was met."""

from __future__ import annotations

import pytest

from airflow_provider_streams.errors import ReceiptMismatch, StreamsError, SystemUnavailable
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.spark.job.outcomes import WindowFailure, landed_of, results_from_json, results_to_json

LANDED = Landed(Receipt("f" * 32, (), 1.0, "complete"))


def test_what_landed_is_returned() -> None:
    assert landed_of([LANDED]) is LANDED


@pytest.mark.parametrize("error", [ReceiptMismatch("plan", ["a row is missing"]), KeyError("as a bug would")])
def test_in_its_own_process_it_is_the_error_itself(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        landed_of([WindowFailure.of(error)])
    assert caught.value is error


def told(error: Exception) -> WindowFailure:
    """As another process hears of it."""
    (failure,) = results_from_json(results_to_json([WindowFailure.of(error)]))
    assert isinstance(failure, WindowFailure)
    return failure


def test_from_another_process_class_and_message_are_the_same() -> None:
    error = SystemUnavailable("broker", "it is gone")
    with pytest.raises(SystemUnavailable) as caught:
        landed_of([told(error)])
    assert (str(caught.value), caught.value.retryable) == (str(error), True)


def test_a_foreign_error_of_another_process_stays_foreign_and_quotes_nothing() -> None:
    with pytest.raises(RuntimeError, match=r"^KeyError: see the log of the Spark job$") as caught:
        landed_of([told(KeyError("hunter2"))])
    assert not isinstance(caught.value, StreamsError)


def test_neither_its_message_nor_its_error_shows_a_secret() -> None:
    shown = WindowFailure.of(SystemUnavailable("broker", "no hunter2 here")).without(["hunter2"])
    assert "hunter2" not in shown.message + str(shown.exception)
    assert isinstance(shown.exception, SystemUnavailable)
