"""Variables that change how Spark starts in a process."""

from __future__ import annotations

import pytest

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.variables import check_classic, of_the_jvm


@pytest.mark.parametrize(
    ("variable", "value"),
    [("SPARK_REMOTE", "sc://me:s3cret@host:15002/;token=s3cret"), ("SPARK_CONNECT_MODE_ENABLED", "1")],
)
def test_one_that_asks_for_spark_connect_is_named_with_its_value_and_the_way_out(variable: str, value: str) -> None:
    with pytest.raises(PreflightFailed, match=rf"{variable}='.*Unset {variable} .* spark_conn_id") as caught:
        check_classic({variable: value})
    assert "s3cret" not in str(caught.value)
    check_classic({})


def test_those_that_a_jvm_takes_options_from_are_listed_without_secrets() -> None:
    given = {"JAVA_TOOL_OPTIONS": "-Xmx1k -Dmy.password=s3cret", "SPARK_SUBMIT_OPTS": "'", "HOME": "/root"}
    assert of_the_jvm(given) == ["SPARK_SUBMIT_OPTS=(not shown)", "JAVA_TOOL_OPTIONS='-Xmx1k -Dmy.password=***'"]
    assert of_the_jvm({}) == []
