from __future__ import annotations

from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.declaration import Declaration
from files_system.source import FilesSource


class Files(Declaration):
    """Folders of numbered files."""

    name = "files"
    title = "Files"
    system = "files_system.system:FolderSystem"
    source_class = FilesSource
    bases = ("publish", "chained")
    columns = ("value", "publish_time", "number")
    options = (Option("root", "where the folders are", "/"), Option("key", "the reader's key", secret=True))
    source_options = (Option("folder", "which of them"),)
