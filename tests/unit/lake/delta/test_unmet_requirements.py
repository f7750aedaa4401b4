"""Which names of Delta's protocol are fulfilled, and which are refused; `tests/integration` has tables with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_streams.lake.delta.unmet_requirements import Described, described_by, unmet
from airflow_provider_streams.lake.delta.writer_requirements import (
    REQUIREMENTS,
    Place,
    Use,
    implied_features,
    requirements_of,
)

APPENDIX = (
    "appendOnly invariants checkConstraints generatedColumns allowColumnDefaults changeDataFeed columnMapping "
    "identityColumns deletionVectors rowTracking timestampNtz domainMetadata v2Checkpoint catalogManaged "
    "icebergCompatV1 icebergCompatV2 clustering vacuumProtocolCheck inCommitTimestamp"
)
"""`PROTOCOL.md`: "Valid Feature Names in Table Features"."""

SECTIONS = "variantType variantShredding typeWidening"
"""`PROTOCOL.md`: features that only their sections name."""

PROPOSED = (
    "checkpointProtection collations columnMappingUsageTracking icebergCompatV3 adaptiveMetadata "
    "icebergWriterCompatV1 materializePartitionColumns timestampNanos"
)
"""`protocol_rfcs/`."""

VERSIONS = {
    1: set(),
    2: {"appendOnly", "invariants"},
    3: {"appendOnly", "invariants", "checkConstraints"},
    4: {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"},
    5: {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"},
}
"""`PROTOCOL.md`: "Writer Version Requirements"."""


@pytest.mark.parametrize("names", [APPENDIX, SECTIONS, PROPOSED])
def test_every_feature_of_the_protocol_has_an_answer(names):
    assert set(names.split()) - {one.name for one in requirements_of(Place.FEATURE)} == set()


def test_each_name_has_one_answer():
    names = [(one.place, one.name) for one in REQUIREMENTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_implies_its_features(version):
    assert set(implied_features(version)) == VERSIONS[version]
    assert unmet(Described(1, version), Use.WINDOWS) is None
    assert set(implied_features(6)) == {*VERSIONS[5], "identityColumns"}


@pytest.mark.parametrize(
    ("properties", "refused"),
    [
        ({"delta.enableChangeDataFeed": "true"}, {Use.CHANGES}),
        ({"delta.enableChangeDataFeed": "false"}, set()),
        ({"delta.setTransactionRetentionDuration": "interval 1 day"}, {Use.CHANGES}),
        ({"delta.appendOnly": "true"}, {Use.WINDOWS, Use.CHANGES}),
        ({"delta.constraints.a": "b > 0"}, {Use.WINDOWS, Use.CHANGES}),
        ({"delta.constraints": "no constraint"}, set()),
    ],
)
def test_what_a_property_is_refused_for(properties, refused):
    table = Described(1, 4, properties=properties)
    assert {use for use in Use if unmet(table, use)} == refused


def test_a_refused_feature_is_refused_for_everything():
    table = Described(1, 7, frozenset({"appendOnly", "checkpointProtection"}))
    assert all("checkpointProtection" in (unmet(table, use) or "") for use in Use)


PROTOCOL = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["a"],"writerFeatures":["a","b"]}}'
METADATA = '{"metaData":{"configuration":{"x":"y"},"schemaString":"{\\"fields\\":[]}"}}'
INFO = '{"commitInfo":{}}'
OLDER = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'
SEEN = Described(3, 7, frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("commits", "seen"),
    [
        ([f"{INFO}\n{PROTOCOL}\n{METADATA}\n"], replace(SEEN, properties={"x": "y"}, fields=[])),
        ([INFO, METADATA, PROTOCOL, OLDER], replace(SEEN, properties={"x": "y"}, fields=[])),
        ([INFO, PROTOCOL, OLDER], SEEN),
        ([INFO, METADATA], None),
        ([], None),
    ],
)
def test_a_log_is_read_from_its_newest_commit(commits, seen):
    assert described_by(commits) == seen
