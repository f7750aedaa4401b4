"""How long catalogs may be silent."""

from __future__ import annotations

ANSWER_SECONDS = 60.0
"""Of a REST catalog and of a metastore: a large commit takes seconds."""
