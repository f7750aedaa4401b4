"""How long catalogs may be silent, and how much they may say."""

from __future__ import annotations

ANSWER_SECONDS = 60.0
"""Of a REST catalog and of a metastore: a large commit takes seconds."""
BODY_SECONDS = 600.0
"""Of a whole answer of a REST catalog: the metadata of a large table over a slow line take minutes."""
MOST_BYTES = 1 << 30
"""Of an answer of a REST catalog. Metadata of a gigabyte would be of millions of snapshots."""
