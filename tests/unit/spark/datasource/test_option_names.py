from __future__ import annotations

import pytest

from airflow_provider_streams.errors import DecodeError, InvalidSchema, MultipleRecordTypes
from airflow_provider_streams.spark.datasource.option_names import for_options


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (InvalidSchema("a", "b"), "or read bytes with value_format='bytes'."),
        (InvalidSchema("a", "b", "Write value=Json('id long')."), "Write value_format='json', value_schema='id long'."),
        (DecodeError("t", "1:2", "", "c"), "with on_decode_error='quarantine' and quarantine_path='..', or"),
        (MultipleRecordTypes("t", ["a", "b"]), "Choose one: value_format='auto', value_type='<name>' or"),
        (MultipleRecordTypes("t", ["a", "b"], of_keys=True), "keys are written: key_format='bytes', for example."),
        (InvalidSchema("a", "b", "value=Auto(as_text=True)"), "value_format='auto', value_as_text=true"),
    ],
)
def test_advice_is_in_options(error, advice):
    told = for_options(error)
    assert type(told) is type(error)
    assert advice in str(told)
