"""What Delta's protocol asks of the writers of a table, and what this package does: the data. Needs no delta-rs.

From `PROTOCOL.md` and `protocol_rfcs/` of delta-io/delta at bb1057f4 (2026-08-22), with the names of features and
properties of its Spark and kernel writers (`TableFeature.scala`, `TableFeatures.java`, `DeltaConfig.scala`).
`unmet_requirements` judges tables by it, and the reference shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final


class Use(Enum):
    """What is done with a table."""

    WINDOWS = "land windows"
    CHANGES = "apply changes"
    EXPIRY = "expire what is replaced"


class Place(Enum):
    """Where a table says what it asks."""

    FEATURE = "table feature"
    PROPERTY = "property"
    COLUMN = "column metadata"
    TYPE = "column type"


class Answer(Enum):
    """What this package does with a requirement."""

    FULFILLED = "fulfilled"
    INACTIVE = "fulfilled while inactive"
    """Nothing is asked until a property or a column asks it, which then has its own answer."""
    WISH = "a wish, not followed"
    """The protocol lets writers ignore it."""
    REFUSED = "refused"
    NOT_FOR_CHANGES = "refused for changes"
    """Fulfilled where windows land."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a table may ask of its writers."""

    place: Place
    answer: Answer
    name: str
    """A `*` at its end stands for any rest."""
    asks: str
    does: str
    """How it is fulfilled; or why not."""
    since: int | None = None
    """Of a feature: the writer version that has it without naming it."""
    off: frozenset[str] = frozenset()
    """Of a property: the values, in small letters, with which it asks nothing."""

    @property
    def refuses(self) -> frozenset[Use]:
        """For what a table that asks it is refused."""
        match self.answer:
            case Answer.REFUSED:
                return frozenset(Use) if self.place is Place.FEATURE else frozenset({Use.WINDOWS, Use.CHANGES})
            case Answer.NOT_FOR_CHANGES:
                return frozenset({Use.CHANGES})
        return frozenset()

    def is_named(self, name: str) -> bool:
        """Whether a name in a table is this one's."""
        return name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name


_BY_DELTA_RS: Final = "delta-rs commits to no such table"
_UNREAD: Final = "delta-rs cannot read such a table"
_BY_CATALOG: Final = "commits here go to the table's folder, past any catalog"

_inactive = partial(Requirement, Place.FEATURE, Answer.INACTIVE)
_fulfilled = partial(Requirement, Place.FEATURE, Answer.FULFILLED)
_followed = partial(Requirement, Place.PROPERTY, Answer.FULFILLED)
_wish = partial(Requirement, Place.PROPERTY, Answer.WISH)
_column = partial(Requirement, Place.COLUMN, Answer.REFUSED)


def _refused(name: str, asks: str, why: str = _BY_DELTA_RS, since: int | None = None) -> Requirement:
    return Requirement(Place.FEATURE, Answer.REFUSED, name, asks, why, since)


def _active(name: str, asks: str, why: str, off: str = "false", answer: Answer = Answer.REFUSED) -> Requirement:
    return Requirement(Place.PROPERTY, answer, name, asks, why, off=frozenset({off, ""}))


def _features() -> Iterator[Requirement]:
    yield _inactive("appendOnly", "respect `delta.appendOnly`", "refused if that is set", since=2)
    yield _inactive("invariants", "respect `delta.invariants` of columns", "refused if a column has them", since=2)
    yield _inactive("checkConstraints", "respect `delta.constraints.*`", "refused if there are any", since=3)
    yield _inactive("changeDataFeed", "respect `delta.enableChangeDataFeed`", "see that property", since=4)
    yield _inactive(
        "generatedColumns", "compute columns with `delta.generationExpression`", "refused if a column has one", since=4
    )
    yield _inactive("columnMapping", "respect `delta.columnMapping.mode`", "refused unless that is `none`", since=5)
    yield _refused("identityColumns", "generate the values of columns with `delta.identity.*`", since=6)
    yield _fulfilled(
        "deletionVectors",
        "write `numRecords` of files with vectors; remove files together with their vectors",
        "files are removed as the log names them, and new ones have no vectors; compaction and wider numbers, which "
        "rewrite files, are refused",
    )
    yield _fulfilled(
        "timestampNtz", "have the feature if a column has that type", "it is added with the first such column"
    )
    yield _fulfilled("v2Checkpoint", "write no checkpoint in several parts", "checkpoints are classic, in one file")
    for name in ("variantType", "variantType-preview"):
        yield _inactive(name, "write columns of type `variant` unshredded", "refused if there is such a column")
    yield _refused("allowColumnDefaults", "write `CURRENT_DEFAULT` of a column that rows do not have")
    yield _refused("rowTracking", "number all rows and their commits")
    yield _refused("domainMetadata", "preserve all metadata domains")
    yield _refused("clustering", "write statistics of clustering columns", "a clustered table has no partitions")
    yield _refused("inCommitTimestamp", "write a time into each commit that is later than the one before")
    yield _refused("vacuumProtocolCheck", "check what the protocol asks of writers before a vacuum")
    yield _refused("materializePartitionColumns", "write partition columns into the files")
    yield _refused("checkpointProtection", "remove no checkpoint before a version")
    yield _refused("columnMappingUsageTracking", "note that a column was dropped or renamed")
    no_rows = "no column of rows has them"
    yield _refused("timestampNanos", "have the feature if a column has times in nanoseconds", no_rows)
    for names, asks, why in _ALIKE:
        for name in names.split():
            yield _refused(name, asks, why)


_ALIKE: Final = (
    (
        "variantShredding variantShredding-preview",
        "shred variants only if `delta.enableVariantShredding` is set",
        _BY_DELTA_RS,
    ),
    ("typeWidening typeWidening-preview", "record each change of a column's type", _BY_DELTA_RS),
    (
        "icebergCompatV1 icebergCompatV2 icebergCompatV3",
        "map columns, and write partition columns into the files",
        _BY_DELTA_RS,
    ),
    ("icebergWriterCompatV1 icebergWriterCompatV3", "map columns by id, and name them by it", _BY_DELTA_RS),
    ("collations collations-preview", "preserve `__COLLATIONS` of columns", _BY_DELTA_RS),
    ("geospatial geospatial-dev", "write columns of type `geometry` and `geography`", _UNREAD),
    ("adaptiveMetadata adaptiveMetadata-preview", "write manifests in place of checkpoints", _UNREAD),
    ("catalogManaged catalogOwned-preview", "commit through the table's catalog", _BY_CATALOG),
    ("coordinatedCommits-preview", "commit through the table's coordinator", _BY_CATALOG),
    (
        "redirectReaderWriter-preview redirectWriterOnly-preview",
        "write to the table that this one names",
        "redirections are not followed",
    ),
)
"""Features that ask the same, by their names."""


def _properties() -> Iterator[Requirement]:
    yield _active(
        "delta.appendOnly",
        "change and remove nothing",
        "nothing may be taken out of it, so neither windows nor changed rows could be replaced",
    )
    yield _active("delta.constraints.*", "check the expression on each new row", "no writer here evaluates SQL", off="")
    yield _active(
        "delta.columnMapping.mode",
        "write columns under other names, or by id",
        "its columns have other names in its files, which delta-rs does not write",
        off="none",
    )
    yield _active(
        "delta.enableChangeDataFeed",
        "write rows that are updated to change files as well",
        "applied changes rewrite files with other rows in them, and write no change files. A landed window has whole "
        "files removed and added, from which readers compute its changes; a compacted one looks replaced",
        answer=Answer.NOT_FOR_CHANGES,
    )
    yield _active(
        "delta.setTransactionRetentionDuration",
        "forget the versions of applications after that time",
        "deletes of applied changes are found by such a version, which must stay",
        off="",
        answer=Answer.NOT_FOR_CHANGES,
    )
    yield _active(
        "delta.compatibility.symlinkFormatManifest.enabled",
        "write the manifests of other engines with each commit",
        "their readers would go on reading what was replaced",
    )
    yield _active(
        "delta.universalFormat.enabledFormats",
        "write the metadata of Iceberg or Hudi with each commit",
        "their readers would go on reading what was replaced",
        off="",
    )
    yield _followed(
        "delta.isolationLevel", "commit as if one after the other", "each commit follows the version it was judged on"
    )
    yield _followed("delta.checkpointInterval", "write a checkpoint after so many commits", "by delta-rs")
    for name in ("delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct"):
        yield _followed(name, "which statistics a checkpoint has", "by delta-rs")
    yield _followed("delta.checkpointPolicy", "which kind of checkpoint to write", "a classic one, which `v2` allows")
    for name in ("delta.logRetentionDuration", "delta.enableExpiredLogCleanup"):
        yield _followed(name, "how long to keep commits", "by delta-rs, at its checkpoints")
    yield _followed(
        "delta.deletedFileRetentionDuration",
        "how long to keep removed files",
        "expiry keeps them as long, or longer if it is asked to",
    )
    yield _followed(
        "delta.parquet.compression.codec", "how to compress files", "`zstd` without it, and for codecs that Arrow lacks"
    )
    yield _followed("delta.enableDeletionVectors", "nothing: writers may use them", "not used")
    yield _wish("delta.parquet.format.version", "which data pages to write", "pages of version 1, which all read")
    yield _wish("delta.writePartitionColumnsToParquet", "write them into the files", "files lack these columns")
    for name in ("delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns"):
        yield _wish(name, "which columns have bounds in the log", "all of up to 32, or none")
    for name in ("delta.autoOptimize*", "delta.targetFileSize", "delta.tuneFileSizesForRewrites"):
        yield _wish(name, "which sizes files have", "the sink and compaction decide")
    for name in ("delta.randomizeFilePrefixes", "delta.randomPrefixLength"):
        yield _wish(name, "where files are", "in a folder for each window")
    for name in _OF_REFUSED_FEATURES.split():
        yield Requirement(Place.PROPERTY, Answer.INACTIVE, name, "respect its feature", "that feature is refused")


_OF_REFUSED_FEATURES: Final = (
    "delta.enableRowTracking delta.rowTrackingSuspended delta.enableInCommitTimestamps delta.enableTypeWidening "
    "delta.enableIcebergCompat* delta.enableVariantShredding delta.requireCheckpointProtectionBeforeVersion "
    "delta.coordinatedCommits.*"
)
"""Properties that ask nothing of a table without their feature."""


def _columns() -> Iterator[Requirement]:
    sql = "no writer here evaluates SQL"
    yield _column("delta.invariants", "refuse rows for which the expression is not true", sql)
    yield _column("delta.generationExpression", "compute the column's values", sql)
    yield _column("delta.identity.*", "generate values, and note the highest", "no writer here numbers rows")
    yield _column("CURRENT_DEFAULT", "write it in rows that lack the column", sql)
    yield _column(
        "__CHAR_VARCHAR_TYPE_STRING",
        "fill `char(n)` with blanks, and refuse longer texts",
        "no writer here measures texts",
    )
    yield _column("__COLLATIONS", "have the feature `collations`", _BY_DELTA_RS)
    yield _column("delta.typeChanges", "have the feature `typeWidening`", _BY_DELTA_RS)
    mapping = "delta.columnMapping.*"
    yield Requirement(Place.COLUMN, Answer.INACTIVE, mapping, "respect `delta.columnMapping.mode`", "see that property")
    yield Requirement(
        Place.COLUMN,
        Answer.FULFILLED,
        "nullable",
        "refuse nulls where it is `false`",
        "refused before rows are read, for rows may lack any value; only the window columns may say so",
    )


def _types() -> Iterator[Requirement]:
    of_type = partial(Requirement, Place.TYPE)
    yield of_type(Answer.FULFILLED, "void", "leave it out of files", "no rows may have such a column")
    yield of_type(Answer.REFUSED, VOID_INSIDE, "write no file", "no file may be written with it")
    yield of_type(Answer.REFUSED, "variant", "write it unshredded", "no column of rows is one")
    yield of_type(Answer.REFUSED, "interval*", "write months or microseconds", "numbers would be taken for intervals")
    for name in ("geometry*", "geography*", "timestamp_nanos*", "string collate*"):
        yield of_type(Answer.REFUSED, name, "have its feature", _UNREAD)


VOID_INSIDE: Final = "void in a list, a map, or a struct without other fields"

REQUIREMENTS: Final = (*_features(), *_properties(), *_columns(), *_types())
"""All of them, in the order of the reference."""


def requirements_of(place: Place) -> list[Requirement]:
    """Those that a table says in one place."""
    return [one for one in REQUIREMENTS if one.place is place]


def implied_features(writer_version: int) -> list[str]:
    """The features that a table of a version before table features has."""
    return [one.name for one in requirements_of(Place.FEATURE) if one.since is not None and one.since <= writer_version]
