"""The docs' sink of a user's own whose files are written by the tasks that read."""
# ruff: noqa: ARG002

# --8<-- [start:example]
import json
import uuid
from pathlib import Path

from airflow_provider_streams import TableWriter
from airflow_provider_streams.lake.data_files import FileTarget
from airflow_provider_streams.lake.storage import Storage


class ListedFiles(TableWriter):
    """A folder of Parquet files; `<window>.json` lists those that are a window's rows, and no reader takes others."""

    def __init__(self, sink, window, terms):
        self.sink, self.root, self.window = sink, Path(sink.target), window
        self.attempt, self.listed = uuid.uuid4().hex, set()

    def open(self, schema):
        """Before the read: where tasks write, and which columns. What cannot be written is refused here."""
        (self.root / "data").mkdir(parents=True, exist_ok=True)
        return FileTarget(Storage(self.sink.asset_uri), "data", f"{self.attempt}-", schema)

    def commit(self, files, receipt):
        """Comes only after the proof, with the files of the tasks that count: those of others are not among them."""
        paths = [file.path for file in files]
        draft = self.root / f".{self.attempt}.json"
        draft.write_text(json.dumps({"files": paths, "plan": receipt.fingerprint, "rows": receipt.rows}))
        draft.replace(self.root / f"{self.window.label}.json")
        self.listed = {self.root / path for path in paths}

    def discard(self):
        """Comes last, whatever happened: what was written and not committed goes."""
        for file in (self.root / "data").glob(f"{self.attempt}-*"):
            if file not in self.listed:
                file.unlink(missing_ok=True)


# --8<-- [end:example]
