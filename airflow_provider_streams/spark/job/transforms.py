"""The user's function between the read and the sink: imported by its name, and rehearsed before the stream is read.

It describes what to do with the rows. The sink's one action does it, and the receipts prove that pass alone. So a
function that runs an action of its own is refused in rehearsal: there it gets rows that Spark cannot plan, on which
every action fails before it writes anything.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest, StreamsError, TransformFailed, as_sentence
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.spark.error_transport import typed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from airflow_provider_streams.spark.job.job_spec import WindowSpec

_log = logging.getLogger(__name__)

_REHEARSAL = "rehearsal of a transform"
_NEVER_PLANNED = f"to_number('{_REHEARSAL}', '9') = 1"
"""A constant that the optimizer fails to compute: Spark optimizes before every action, and never a mere DataFrame."""

_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<words>.*))?$")
_CONNECTS_OWN = {"SparkConnectGrpcException", "RetriesExceeded"}
"""Failures of Spark Connect itself; failures of a query are subclasses."""
_DATA_ERROR, _USER_CODE = "22", "38"
"""Classes of SQLSTATE: a value that an expression cannot take; a failure in a user's function."""


@dataclass(frozen=True, slots=True)
class TransformContext:
    """What a transform may know in addition to its rows: `def decode(df, context)`."""

    window: Window
    plan: Plan
    attempt: str
    """A text that is unique to this try at the window."""
    reader: str


@dataclass(frozen=True)
class Transform:
    """A user's function `package.module:function`.

    Args:
        path: its name.
        spec: the window it is called for.
        attempt: see `TransformContext`; windows that are read together share one.
    """

    path: str
    spec: WindowSpec
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, df: DataFrame) -> DataFrame:
        """The function's own DataFrame.

        Raises:
            InvalidRequest: it cannot be imported or called, or ran an action in rehearsal.
            TransformFailed: it raised, or its rows have columns that no table can hold.
        """
        from pyspark.sql import DataFrame  # noqa: PLC0415 - only where Spark runs

        arguments = (df, self._context()) if _takes_context(function := load(self.path)) else (df,)
        try:
            made: object = function(*arguments)
            schema = made.schema if isinstance(made, DataFrame) else None  # Connect resolves names only when asked
        except Exception as error:
            known = self._failure(error)
            if known is error:
                raise
            raise known from None
        if not isinstance(made, DataFrame) or schema is None:
            raise InvalidRequest(f"transform {self.path} returns a {type(made).__name__}, and not a DataFrame")
        if problem := _unfit(schema):
            raise TransformFailed(self.path, self.spec.plan.window, problem)
        return made

    def rehearse(self, spark: SparkSession, columns: pa.Schema) -> None:
        """Call it once on rows that cannot be planned, so that its mistakes are found before the stream is read.

        Raises:
            InvalidRequest, TransformFailed: as by a call.
        """
        with unchanged(spark):
            self(_unplannable(spark, columns))

    def blamed(self, error: BaseException) -> BaseException:
        """The transform's failure, if `error` is of a row in one of Spark's tasks or of its type; else `error`."""
        cause = _cause_in_task(error)
        if isinstance(error, StreamsError) or cause is None:
            return error
        return self._failed(error, cause)

    def _context(self) -> TransformContext:
        plan = self.spec.plan
        return TransformContext(plan.window, plan, self.attempt, plan.reader)

    def _failure(self, error: Exception) -> BaseException:
        """The error for a failed call; `error` itself, if Spark failed."""
        known = typed(error, self.spec.hidden)
        if isinstance(known, StreamsError) or type(error).__name__ in _CONNECTS_OWN:
            return known
        if any(_REHEARSAL in _words(one) for one in _chain(error)):
            return InvalidRequest(
                f"transform {self.path} ran a Spark action (count, collect, write, ..) or planned one (cache, rdd, "
                "explain, pivot without its values, ..): the stream would be read twice and only one pass be proven. "
                "Return a DataFrame, and leave the action to the sink"
            )
        return self._failed(error, _words(error))

    def _failed(self, error: BaseException, cause: str) -> TransformFailed:
        """A short error; its traceback goes to the log, without secrets."""
        secrets = self.spec.hidden
        _log.error("%s", redact("".join(traceback.format_exception(error)), secrets))
        return TransformFailed(self.path, self.spec.plan.window, redact(cause, secrets))


def load(path: str) -> Callable[..., Any]:
    """The function of a name.

    Raises:
        InvalidRequest: it cannot be imported.
    """
    module, _, name = path.partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module may raise anything when it is imported
        raise InvalidRequest(
            f"transform {path!r} cannot be imported where Spark's driver program runs: {as_sentence(_words(error))} "
            "Write it as 'package.module:function'"
        ) from error
    return function


@contextmanager
def unchanged(spark: SparkSession) -> Iterator[None]:
    """Undo settings of the session that change meanwhile: the next window is not read in another time zone."""
    before = settings(spark)
    try:
        yield
    finally:
        with suppress(Exception):  # Spark may be gone, and the reason must not be hidden
            _restore(spark, before)


def settings(spark: SparkSession) -> dict[str, str]:
    """All that is set in a session."""
    return dict(spark.conf.getAll)


def _restore(spark: SparkSession, before: dict[str, str]) -> None:
    now = settings(spark)
    for name in now.keys() - before.keys():
        spark.conf.unset(name)
    for name, value in before.items():
        if now.get(name) != value:
            spark.conf.set(name, value)


def _unfit(schema: StructType) -> str | None:
    """Why no table can have such columns: most engines ignore the case of names."""
    if twice := _twice(schema):
        return f"its rows have columns of one name ({', '.join(twice)}; upper and lower case are the same)"
    return None if schema.fields else "its rows have no columns"


def _twice(kind: DataType, inside: str = "") -> list[str]:
    """Names that occur twice, also within structs: such files cannot be read."""
    if not hasattr(kind, "fields"):
        parts = (getattr(kind, part, None) for part in ("elementType", "keyType", "valueType"))
        return [name for part in parts if part is not None for name in _twice(part, inside)]
    counts = Counter(field.name.lower() for field in kind.fields)
    here = [f"{inside}{field.name}" for field in kind.fields if counts[field.name.lower()] > 1]
    return here + [name for field in kind.fields for name in _twice(field.dataType, f"{inside}{field.name}.")]


def _takes_context(function: Callable[..., Any]) -> bool:
    """Whether its second argument is the context: a required one, or one of that name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:2]
    except (TypeError, ValueError):  # not written in Python
        return False
    return any(
        one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        and (one.name == "context" or one.default is one.empty)
        for one in parameters
    )


def _unplannable(spark: SparkSession, columns: pa.Schema) -> DataFrame:
    """The columns of a read, with rows that no action can reach."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    schema = from_arrow_schema(columns)
    nothing = (F.lit(None).cast(column.dataType).alias(column.name) for column in schema)
    return spark.range(1).select(*nothing).filter(_NEVER_PLANNED)


def _cause_in_task(error: BaseException) -> str | None:
    """Class and first line of the error of a user's function or expression; None: something else failed."""
    state = getattr(error, "getSqlState", lambda: None)() or ""
    if type(error).__name__ == "PythonException" or state.startswith(_USER_CODE):
        return _last_raised(str(error))
    return _words(error) if state.startswith(_DATA_ERROR) else None


def _last_raised(text: str) -> str | None:
    """The last line of a Python traceback in a text: `<class>: <words>`."""
    _, found, rest = text.partition("Traceback (most recent call last):")
    raised = [line for line in rest.splitlines() if _RAISED.match(line)] if found else []
    return raised[-1] if raised else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
