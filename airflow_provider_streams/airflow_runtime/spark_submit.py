"""Runs the job by spark-submit: a child process, with which this one talks through files."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from io import IOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.errors import InvalidRequest, PreflightFailed, SparkUnavailable, StreamsError
from airflow_provider_streams.model.optional_dependencies import is_installed
from airflow_provider_streams.spark.launch import cancellation
from airflow_provider_streams.spark.launch.java_home_for_spark import spark_java_home
from airflow_provider_streams.spark.launch.java_search import JavaMissing, find_java
from airflow_provider_streams.spark.launch.program_result import explains_failure, read_result
from airflow_provider_streams.spark.launch.session_start import SEE_MESSAGES
from airflow_provider_streams.spark.launch.submit_output import reason_in
from airflow_provider_streams.spark.settings import effective_settings, spark_home, variables
from airflow_provider_streams.spark.settings.spark_settings import JAVA_HOME, SparkSettings

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_streams.spark.job.job_spec import JobSpec
    from airflow_provider_streams.spark.job.outcomes import WindowResult

_log = logging.getLogger(__name__)

_ENTRY = """\
import json, os, sys
try:
    from airflow_provider_streams.spark.launch.{program} import main
except ModuleNotFoundError as error:
    result = sys.argv[sys.argv.index("--result") + 1]
    message = (
        f"the Python of the Spark driver program, {{sys.executable}}, has no module {{error.name}}: install it there, "
        "or set PYSPARK_DRIVER_PYTHON (spark.pyspark.driver.python) or spark.pyspark.python to a Python that has it"
    )
    with open(result + ".draft", "w") as told:
        json.dump({{"error": {{"type": "PreflightFailed", "message": message, "untouched": True}}}}, told)
    os.rename(result + ".draft", result)
    sys.exit(1)
sys.exit(main())
"""
"""What spark-submit runs. Without the modules that the program needs, it says so where the program's answer goes."""
_MOST_LINES = 2_000
"""Of the end of spark-submit's output: a trace of Java, or a report of packages, has hundreds."""
_STATUS = re.compile(r"Error code is: (-?\d+)")
_JOB, _EXAMINE = "spark_submit_program", "examine_program"
"""The programs that spark-submit may run."""


class SubmitLauncher:
    """spark-submit in client mode: the driver program is a child of this process, on this machine."""

    def __init__(self, conn_id: str, connection: Connection, settings: SparkSettings) -> None:
        self._conn_id = conn_id
        extra = extra_of(connection)
        deploy_mode = _deploy_mode(conn_id, extra)
        home = _home_of(extra.get("spark-binary") or "spark-submit")
        self._settings = effective_settings.of_submitted(settings, home, deploy_mode)
        self.secrets = self._settings.secrets
        self._is_local = is_local(connection)
        self._connection = connection
        self._hook: Any = None
        self._output: deque[str] = deque(maxlen=_MOST_LINES)

    def run(self, job: JobSpec) -> list[WindowResult]:
        """See `Launcher`."""
        from airflow_provider_streams.spark.job.outcomes import results_from_json  # noqa: PLC0415 - what runs on the cluster, when used

        with tempfile.TemporaryDirectory(prefix="streams-job-") as folder:  # mode 0700
            files = _Files(Path(folder), _JOB)
            files.write(job.to_json(), self._settings)
            self._submit(files, job.title, job)
            return results_from_json(read_result(files.result, "spark-submit")["results"])

    def examine(self) -> dict[str, Any]:
        """See `Launcher`."""
        with tempfile.TemporaryDirectory(prefix="streams-job-") as folder:  # mode 0700
            files = _Files(Path(folder), _EXAMINE)
            files.write({}, self._settings)
            self._submit(files, "streams doctor")
            found: dict[str, Any] = read_result(files.result, "spark-submit")["found"]
            return found

    def _submit(self, files: _Files, title: str, job: JobSpec | None = None) -> None:
        """Run the driver program to its end; raises only if it did not write why it failed."""
        from airflow.providers.common.compat.sdk import AirflowException  # noqa: PLC0415 - tests of others need no Airflow

        from airflow_provider_streams.lake.process_lock import ProcessLock  # noqa: PLC0415 - as above

        self._hook = self._hook_for(title, files)
        try:
            cancellation.check()  # the task may have been ended meanwhile
            with ProcessLock(files.wanted).held():  # spark-submit and its driver program outlive a killed task
                self._hook.submit(str(files.program), env=self._environment(job))
        except Exception as error:
            if not explains_failure(files.result):
                if isinstance(error, AirflowException):  # its words are the command
                    raise self._ended(error) from None
                raise
        finally:
            self._hook = None

    def _ended(self, error: Exception) -> StreamsError:
        """Spark-submit failed, and the driver program wrote nothing: it was killed, or never started."""
        status = _STATUS.search(str(error))
        said = f"spark-submit ended with status {status[1]}" if status else "spark-submit failed"
        reason = reason_in(self._output)
        why = f"{said} ({reason.text})" if reason.text else said
        where = f"the Spark of connection {self._conn_id!r}"
        if reason.is_final:
            return PreflightFailed(
                f"{where} does not start: {why}. Check Spark's settings: those of the operator, of the connection and "
                f"of the configuration. {SEE_MESSAGES}"
            )
        return SparkUnavailable(where, f"{why}. Spark's own messages above may say more")

    def _hook_for(self, title: str, files: _Files) -> Any:
        check_kubernetes(self._conn_id, self._connection)
        from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415 - optional

        from airflow_provider_streams.spark.launch.py_files import executor_archive  # noqa: PLC0415 - as above

        output = self._output
        output.clear()

        class Hook(SparkSubmitHook):
            def _process_spark_submit_log(self, itr: Iterator[str]) -> None:
                super()._process_spark_submit_log(_remembered(itr, output))

        return Hook(
            conn_id=self._conn_id,
            name=self._settings.conf.get("spark.app.name") or title,
            properties_file=str(files.properties),
            py_files=",".join((str(executor_archive()), *self._settings.paths("spark.submit.pyFiles"))),
            application_args=files.arguments,
            deploy_mode="client",
        )

    def stop(self) -> None:
        """See `Launcher`."""
        hook = self._hook
        if hook is not None:
            hook.on_kill()

    def _environment(self, job: JobSpec | None) -> dict[str, str]:
        """The child's: secrets travel here, for a command line is public. Set by `Popen`, in every master alike."""
        environment = {**os.environ, **(job.how.secret_environment() if job else {})}
        for name in variables.OF_OTHER_LAUNCHES:
            environment.pop(name, None)
        environment["PATH"] = _search_path()
        environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment |= _java(self._settings.conf.get(JAVA_HOME))
        if self._is_local:
            environment["PYSPARK_PYTHON"] = sys.executable
        folder = _folder_of(job.transform) if job else None
        if folder:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), folder]))
        return environment


def _remembered(lines: Any, output: deque[str]) -> Iterator[str]:
    """The lines, which `output` then has as well. Their pipe is closed at the end: the provider's hook does not."""
    for line in lines:
        output.append(line)
        yield line
    if isinstance(lines, IOBase):
        lines.close()


def check_kubernetes(conn_id: str, connection: Connection) -> None:
    """Check for the package without which Airflow's hook fails with a `NameError`; raises `PreflightFailed`."""
    on_kubernetes = connection.conn_type == "k8s" or (connection.host or "").startswith("k8s:")
    if on_kubernetes and not is_installed("airflow.providers.cncf.kubernetes"):
        raise PreflightFailed(
            f"connection {conn_id!r} is of a Spark on Kubernetes, for which Airflow's Spark provider needs another "
            "package. Run: pip install apache-airflow-providers-cncf-kubernetes"
        )


def _deploy_mode(conn_id: str, extra: Mapping[str, Any]) -> str | None:
    """What the connection says; None: nothing.

    Raises:
        PreflightFailed: the driver program would run elsewhere.
        InvalidRequest: there is no such mode.
    """
    given = str(extra.get("deploy-mode") or "").strip()
    if given == "cluster":
        raise PreflightFailed(
            f"connection {conn_id!r} asks for deploy mode 'cluster', {effective_settings.WHY_CLIENT}. Set deploy-mode "
            "to 'client' in the connection's extra, or reach the cluster over Spark Connect (connection type "
            "'spark_connect')"
        )
    if given not in ("", "client"):
        raise InvalidRequest(f"connection {conn_id!r}: deploy-mode {given!r} is unknown. Set it to 'client'")
    return given or None


def _search_path() -> str:
    """Where the child's programs are: those of this Python come last."""
    return f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"


def _home_of(binary: str) -> Path | None:
    """The home of the Spark whose spark-submit will run; None: it is not known.

    Raises:
        PreflightFailed: `SPARK_HOME` names no Spark, or the Spark is too old.
    """
    home = spark_home.named_home() or _home_by_script(binary)
    if home is not None:
        spark_home.check_recent(home)
    return home


def _home_by_script(binary: str) -> Path | None:
    """As the script finds it without `SPARK_HOME`, which asks a Python. `PreflightFailed`: that does not run."""
    found = shutil.which(binary, path=_search_path())
    if found is None:
        return None
    script = Path(found).resolve()
    if not (search := script.with_name("find_spark_home.py")).is_file():
        return script.parent.parent
    python = os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable)
    try:
        told = subprocess.run([python, str(search)], capture_output=True, text=True, check=False)  # noqa: S603 - as the script does
    except OSError as error:
        raise PreflightFailed(
            f"PYSPARK_DRIVER_PYTHON={python!r} does not run ({error.strerror}), so spark-submit cannot start. Let it "
            "name a Python that has PySpark and pyarrow, or unset it"
        ) from None
    return Path(told.stdout.strip()) if told.returncode == 0 else None


def _java(setting: str | None) -> dict[str, str]:
    """What tells spark-submit its Java; nothing if there is none, for a `spark-env.sh` may still name one.

    Raises:
        PreflightFailed: the setting's is missing or too old.
    """
    try:
        java = find_java(setting)
    except JavaMissing as error:
        if setting:
            raise PreflightFailed(str(error)) from None
        return {}
    _log.info("spark-submit runs on %s", java)
    return {"JAVA_HOME": str(spark_java_home(java))}


class _Files:
    """Files through which this process and the driver program talk, in a private folder."""

    def __init__(self, folder: Path, program: str) -> None:
        self._entry = _ENTRY.format(program=program)
        self.program, self.spec, self.result = folder / "job.py", folder / "spec.json", folder / "result.json"
        self.wanted, self.properties = folder / "wanted", folder / "spark.properties"

    @property
    def arguments(self) -> list[str]:
        """Those of the driver program."""
        return ["--spec", str(self.spec), "--result", str(self.result), "--lifeline", str(self.wanted)]

    def write(self, spec: Mapping[str, Any], settings: SparkSettings) -> None:
        """What the child reads."""
        self.program.write_text(self._entry)
        self.spec.touch(mode=0o600)
        self.spec.write_text(json.dumps(spec))
        settings.without("spark.submit.pyFiles", "spark.app.name").write(self.properties)


def is_local(connection: Connection) -> bool:
    """Whether Spark's workers run on this machine: the master is `local`, `local[..]` or `local-cluster[..]`."""
    return connection.conn_type == "local" or bool(effective_settings.LOCAL.fullmatch(connection.host or ""))


def _folder_of(transform: str | None) -> str | None:
    """The folder of the transform's top package: the child does not have this process's import path."""
    if transform is None:
        return None
    found = importlib.util.find_spec(transform.partition(":")[0].partition(".")[0])
    if found is None or found.origin is None:
        return None
    origin = Path(found.origin)
    return str(origin.parent.parent if found.submodule_search_locations else origin.parent)
