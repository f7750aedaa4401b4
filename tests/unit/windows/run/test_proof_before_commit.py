"""A table changes only once all that is asked of a window's read holds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_streams.errors import ReceiptMismatch, TooManyDecodeErrors
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.job import job_pass
from airflow_provider_streams.testing.fake import EPOCH

MINUTE = Window(EPOCH, EPOCH + timedelta(minutes=1))


@pytest.mark.parametrize("then", ["drop", "quarantine"])
def test_with_too_many_undecodable_events_nothing_lands(world: Any, then: Any) -> None:
    world.hold(events=120, records=1, torn_every=20)
    with pytest.raises(TooManyDecodeErrors):
        world.read(MINUTE, value=Json("n long"), undecodable=DecodeErrorPolicy(then, 0.01))
    assert (world.windows(), world.states(MINUTE)) == ([], ["failed"])
    world.read(MINUTE, value=Json("n long"), undecodable=DecodeErrorPolicy(then, 0.1))
    assert (world.windows(), world.states(MINUTE)) == ([MINUTE], ["covered"])


def test_with_a_receipt_that_does_not_agree_nothing_lands(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def differ(plan: Any, *_: Any, **__: Any) -> Any:
        raise ReceiptMismatch(plan.fingerprint, ["split 0 reported twice"])

    monkeypatch.setattr(job_pass, "compare", differ)
    with pytest.raises(ReceiptMismatch):
        world.read(MINUTE)
    assert (world.windows(), world.states(MINUTE)) == ([], ["failed"])
