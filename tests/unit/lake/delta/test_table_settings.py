from __future__ import annotations

import re
from datetime import timedelta

import pytest

from airflow_provider_streams.lake.delta.table_settings import codec_of, interval_of


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("interval 1 week", timedelta(days=7)),
        ("INTERVAL 30 DAYS", timedelta(days=30)),
        ("168 hours", timedelta(days=7)),
        ("interval 1 week 2 days 3 hours", timedelta(days=9, hours=3)),
        ("interval 0 seconds", timedelta(0)),
    ],
)
def test_an_interval_is_the_sum_of_its_parts(text, length):
    assert interval_of(text) == length


@pytest.mark.parametrize(
    "text", ["", "interval", "interval 1 month", "interval 1 year 2 days", "7", "interval -1 days"]
)
def test_what_has_no_fixed_length_is_no_interval(text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        interval_of(text)


@pytest.mark.parametrize(
    ("asked", "codec"), [("ZSTD", "zstd"), ("uncompressed", "none"), ("lz4_raw", "lz4"), ("lz4", "zstd")]
)
def test_a_codec_is_the_tables_or_deltas_default(asked, codec):
    assert codec_of({"delta.parquet.compression.codec": asked}) == codec
    assert codec_of({}) == "zstd"
