"""Why spark-submit ended: lines of outputs of Spark 4.2, shortened."""

from __future__ import annotations

import pytest

from airflow_provider_streams.spark.launch.submit_output import reason_in

OUTPUTS = {
    "a package that is not there": (
        """
        WARNING: Using incubator modules: jdk.incubator.vector
        :: com.nope#nope;1.0: not found
        Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: com.nope#nope;1.0: not found]
        \tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:539)
        """,
        "RuntimeException: [unresolved dependency: com.nope#nope;1.0: not found]",
    ),
    "memory that is no size": (
        """
        Invalid maximum heap size: -Xmx4x
        Error: Could not create the Java Virtual Machine.
        Error: A fatal exception has occurred. Program will exit.
        """,
        "Invalid maximum heap size: -Xmx4x",
    ),
    "a Python that is not there": (
        """
        Exception in thread "main" java.io.IOException: Cannot run program "/no/python": error=2, No such
        \tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
        Caused by: java.io.IOException: error=2, No such
        \tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)
        """,
        'IOException: Cannot run program "/no/python": error=2, No such; IOException: error=2, No such',
    ),
    "a folder that cannot be made": (
        """
        26/11/29 05:47:57 ERROR JavaUtils: Failed to create directory /proc/nope/blockmgr-b6bd0029
        java.nio.file.NoSuchFileException: /proc/nope
        26/11/29 05:47:57 INFO ShutdownHookManager: Shutdown hook called
        """,
        "Failed to create directory /proc/nope/blockmgr-b6bd0029",
    ),
    "an end without words": ("26/11/29 05:47:57 INFO SparkContext: Running Spark version 4.2.0", ""),
}


@pytest.mark.parametrize(("output", "reason"), OUTPUTS.values(), ids=OUTPUTS)
def test_the_reason_is_the_first_cause_that_the_output_names(output, reason):
    assert reason_in(output.splitlines()).text == reason


@pytest.mark.parametrize(
    ("output", "is_final"),
    [
        (OUTPUTS["memory that is no size"][0], True),
        (OUTPUTS["a package that is not there"][0], False),
        (OUTPUTS["a folder that cannot be made"][0], False),
        ("Unsupported thing, says a library\n", False),
        ("", False),
        (
            """
            Error occurred during initialization of VM
            Could not reserve enough space for 4194304KB object heap
            Error: Could not create the Java Virtual Machine.
            """,
            False,
        ),
    ],
)
def test_only_a_refused_option_would_be_refused_again(output, is_final):
    assert reason_in(output.splitlines()).is_final == is_final
