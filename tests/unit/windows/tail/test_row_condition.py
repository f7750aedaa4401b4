from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.windows.tail.row_condition import RowCondition

ROWS = pa.RecordBatch.from_pydict(
    {
        "amount": pa.array([1, 200, None], pa.int64()),
        "price": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(9, 2)),
        "state": pa.array(["paid", "sent", None]),
        "paid": pa.array([True, False, None]),
        "raw": pa.array([b"a", b"b", None]),
        "day": pa.array([date(2026, 11, 20), date(2026, 11, 21), None]),
        "at": pa.array([datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC), None]),
        "customer": pa.array([{"city": "Oslo"}, {"city": "Rome"}, None]),
    }
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("amount > 100", [1]),
        ("100 < amount", [1]),
        ("amount == -1", []),
        ("amount != 1", [1]),
        ("amount < 1.5", [0]),
        ("price == 2.25", [1]),
        ("state == 'paid' or amount > 100", [0, 1]),
        ("not state == 'paid'", [1]),
        ("state in ('paid', 'lost')", [0]),
        ("state not in ['paid']", [1]),
        ("state is None", [2]),
        ("state is not None and paid", [0]),
        ("raw == 'b'", [1]),
        ("day >= '2026-11-21'", [1]),
        ("at < '2026-11-20T10:30Z'", [0]),
        ("at >= '2026-11-20' and at < '2026-11-21'", [0, 1]),
        ("at >= '2026-11-21'", []),
        ("customer.city == 'Oslo'", [0]),
        ("contains(state, 'ai')", [0]),
        ("startswith(state, 's') and matches(customer.city, '^R.me$')", [1]),
    ],
)
def test_rows_that_meet_a_condition(text, kept):
    condition = RowCondition(text)
    condition.check(ROWS.schema)
    assert [number for number, one in enumerate(condition.mask(ROWS).to_pylist()) if one] == kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("amount = 1", "compare with =="),
        ("amount", "is no condition"),
        ("1 == 1", "no column"),
        ("amounts > 1", "did you mean 'amount'"),
        ("amount > 'x'", "does not fit the columns: amount is long$"),
        ("paid and 'x' == amount", "where \"'x' == amount\" does not fit the columns: amount is long$"),
        ("amount == 1000000000000000000000", "does not fit the columns: amount is long$"),
        ("customer.town == 'Oslo'", "'customer.town' does not fit the columns: customer is struct<city string>$"),
        ("state > amount", "does not fit the columns: state is string, amount is long$"),
        ("day > 'tomorrow'", "does not fit the columns: day is date$"),
        ("not price", "does not fit the columns: price is decimal\\(9, 2\\)$"),
        ("matches(state, '(')", "'\\(' is not a regular expression"),
        ("contains(at, 'x')", "does not fit the columns: at is timestamp$"),
        ("at > 'noon'", "is not a time"),
        ("__import__('os').system('true')", "has no meaning here"),
        ("state.upper() == 'PAID'", "has no meaning here"),
        ("(lambda: 1)() == amount", "has no meaning here"),
        ("amount is 1", "with None only"),
        ("1 < amount < 3", "has no meaning here"),
        ("exec('state', 'x')", "has no meaning here"),
        ("not " * 20_000 + "paid", "characters"),
        ("(" * 900 + "paid" + ")" * 900, "cannot be read"),
    ],
)
def test_what_is_no_condition_is_rejected_before_anything_is_read(text, said):
    with pytest.raises(InvalidRequest, match=said):
        RowCondition(text).check(ROWS.schema)
