import pytest
from pyspark.errors import AnalysisException

from airflow_provider_streams import TableSink
from airflow_provider_streams.errors import CommitStateUnknown, SinkError, TableOwnedByOther, TableUnavailable
from airflow_provider_streams.spark.catalog.spark_errors import commit_errors_of, errors_of

SINK = TableSink("prod.shop.orders")
STACK = "\n\tat org.apache.spark.Some.where(Some.scala:1)\n\t... 12 more"


def raised(guard, error):
    with pytest.raises(SinkError) as caught, guard(SINK):
        raise error
    assert caught.value.target == "prod.shop.orders"
    assert "Some.scala" not in str(caught.value)
    return type(caught.value)


@pytest.mark.parametrize(
    ("words", "looking", "committing"),
    [
        ("java.net.SocketTimeoutException: Read timed out", TableUnavailable, CommitStateUnknown),
        ("o.a.i.exceptions.ServiceFailureException: Server error", TableUnavailable, CommitStateUnknown),
        ("o.a.i.exceptions.CommitStateUnknownException: unknown", SinkError, CommitStateUnknown),
        ("o.a.i.exceptions.CommitFailedException: Cannot commit", TableUnavailable, TableUnavailable),
        ("o.a.spark.SparkException: Checkpoint block rdd_5_0 not found!", TableUnavailable, TableUnavailable),
        ("io.delta.exceptions.ConcurrentAppendException: files were added", TableUnavailable, TableUnavailable),
        ("o.a.i.exceptions.ForbiddenException: no", SinkError, SinkError),
        ("o.a.i.exceptions.ValidationException: Cannot delete file where some", SinkError, SinkError),
        ("org.apache.spark.SparkException: Job aborted: an executor left", SinkError, CommitStateUnknown),
    ],
)
def test_what_sparks_errors_mean(words, looking, committing):
    error = RuntimeError(f"An error occurred while calling o1.overwrite.\n: {words}{STACK}")
    assert raised(errors_of, error) is looking
    assert raised(commit_errors_of, error) is committing


def test_what_is_refused_before_anything_runs_is_known_not_to_be_there():
    assert raised(commit_errors_of, AnalysisException("[TABLE_OR_VIEW_NOT_FOUND]")) is SinkError


def test_a_jar_of_another_spark_is_named_as_the_cause():
    with pytest.raises(SinkError, match="made for another Spark"), errors_of(SINK):
        raise RuntimeError("java.lang.IncompatibleClassChangeError: class SparkView can not implement View")


def test_our_own_errors_stay_what_they_are():
    with pytest.raises(TableOwnedByOther), errors_of(SINK):
        raise TableOwnedByOther("t", "somebody's")


def test_a_class_whose_jar_is_missing_is_named_with_the_setting_that_brings_it():
    words = (
        "An error occurred while calling o57.tableExists.\n: org.apache.spark.SparkException: Cannot find catalog "
        "plugin class for catalog 'prod': org.apache.iceberg.spark.SparkCatalog\nCaused by: "
        "java.lang.ClassNotFoundException: org.apache.iceberg.spark.SparkCatalog"
    )
    with pytest.raises(SinkError) as caught, errors_of(SINK):
        raise RuntimeError(f"{words}{STACK}")
    said = str(caught.value)
    assert "Spark has no class org.apache.iceberg.spark.SparkCatalog" in said
    assert "--spark packages=" in said
    assert "Error" not in said
