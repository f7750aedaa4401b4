"""The docs' sink of a user's own that is written from a DataFrame."""
# ruff: noqa: ARG002

# --8<-- [start:example]
import shutil
import uuid
from pathlib import Path

from airflow_provider_streams import DataFrameSinkWriter


class JsonLines(DataFrameSinkWriter):
    """Folders of JSON lines; the text `<window>.folder` names the one that holds a window now."""

    def __init__(self, sink, window, terms):
        self.root, self.window = Path(sink.target), window
        self.folder = self.root / f"{window.label}-{uuid.uuid4().hex}"
        self.is_committed = False

    def stage(self, df):
        """The one Spark action: rows go where no reader looks."""
        df.write.json(str(self.folder))

    def commit(self, receipt, rows):
        """Comes only after the proof. One step, which leaves the old window or the new one."""
        draft = self.root / f".{self.folder.name}"
        draft.write_text(self.folder.name)
        draft.replace(self.root / f"{self.window.label}.folder")
        self.is_committed = True
        return rows

    def discard(self):
        """Comes last, whatever happened: what was staged and not committed goes."""
        if not self.is_committed:
            shutil.rmtree(self.folder, ignore_errors=True)


# --8<-- [end:example]
