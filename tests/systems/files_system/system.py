from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Self

from airflow_provider_streams.errors import EventsLost, InvalidRequest, SourceReplaced
from airflow_provider_streams.model.plan.plan import OnLoss, Plan, PlanRequest, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.systems.base import Recorded
from files_system.folder import Folder, plan
from files_system.source import FilesSource

if TYPE_CHECKING:
    import pyarrow as pa

    from files_system.reader import FilesReader


class FolderSystem:
    """See `StreamSystem`."""

    name: ClassVar[str] = "files"

    def __init__(self, root: str) -> None:
        self._root = root

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        return cls(options.get("root", "/"))

    def source(self, options: Mapping[str, str]) -> FilesSource:
        return FilesSource(options["folder"])

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        if not isinstance(text, str):
            return Cut.from_json(text)
        folder = self._folder(source)
        return folder.cut(folder.head if text == "earliest" else folder.tail)

    def tail(self, source: Source) -> Cut:
        folder = self._folder(source)
        return folder.cut(folder.tail)

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        return earlier.extend(tail)

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:
        folder = self._folder(source)
        return folder.published(folder.head) if folder.head else None

    def plan(self, request: PlanRequest) -> Plan:
        return plan(self._folder(request.source), request)

    def observe_tail(self, source: Source) -> TailObservation:
        return TailObservation(datetime.now(UTC), self.tail(source), self.incarnation(source))

    def incarnation(self, source: Source) -> Incarnation:
        return self._folder(source).incarnation

    def other_incarnation(self, source: Source, incarnation: Incarnation) -> SourceReplaced | None:
        found = self.incarnation(source)
        return SourceReplaced(source, str(incarnation), str(found)) if incarnation and incarnation != found else None

    def check_origin(self, plan: Plan) -> None:
        (name,) = plan.source.names
        if plan.source.incarnation != (found := Folder(self._root, name).incarnation):
            raise SourceReplaced(name, str(plan.source.incarnation), str(found))

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        import pyarrow as pa

        types = {"value": pa.binary(), "publish_time": pa.timestamp("us", tz="UTC"), "number": pa.int64()}
        names = tuple(types) if columns is None else tuple(columns)
        for unknown in set(names) - types.keys():
            raise InvalidRequest(f"no column {unknown!r}; known: {', '.join(types)}")
        return pa.schema([(name, types[name]) for name in names])

    def read(
        self, plan: Plan, split: Split, columns: Sequence[str] | None = None, *, on_loss: OnLoss = "fail"
    ) -> FilesReader:
        from files_system.reader import FilesReader

        (name,) = plan.source.names
        return FilesReader(Folder(self._root, name), plan, split, self.schema(columns))

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        found = tuple(receipts)
        for gap in (gap for receipt in found for gap in receipt.gaps):
            raise EventsLost(plan.source.names[0], gap.first, gap.end, f"{gap.end - gap.first} events", "deleted")
        return found

    def close(self) -> None:
        pass

    def _folder(self, source: Source) -> Folder:
        return Folder(self._root, str(source))
