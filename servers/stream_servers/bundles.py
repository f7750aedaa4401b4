"""What is fetched from a Maven repository, by name. `locks/` has the files of each, which `make locks` writes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

PULSAR_VERSION = "4.0.8"
PRAVEGA_VERSION = "0.13.0"
SCHEMA_REGISTRY_VERSION = "0.6.0"
HIVE_VERSION = "3.1.3"
ICEBERG_VERSION = "1.12.0"
DELTA_VERSION = "4.1.0"
SPARK_VERSION = "4.2.0"
DEBEZIUM_VERSION = "2.7.3.Final"

_ALONE = (("*", "*"),)


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a Maven repository."""

    group: str
    name: str
    version: str
    type: str = "jar"
    classifier: str | None = None

    @property
    def path(self) -> str:
        """Where it is below the repository's address."""
        end = f"-{self.classifier}" if self.classifier else ""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.name}-{self.version}{end}.{self.type}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files that one program needs: `artifacts`, and what they depend on but `excludes`.

    The version of an artifact named here wins over the one a dependency asks for. `excludes` are pairs of
    (group, name); "*" stands for any name, and ("*", "*") for no dependencies at all.
    """

    name: str
    title: str
    artifacts: tuple[Artifact, ...]
    excludes: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """Of all that decides the files."""
        return hashlib.sha256(repr((self.artifacts, self.excludes)).encode()).hexdigest()[:16]


PULSAR = Bundle(
    "pulsar",
    f"Apache Pulsar {PULSAR_VERSION}",
    (Artifact("org.apache.pulsar", "pulsar-server-distribution", PULSAR_VERSION, "tar.gz", "bin"),),
    _ALONE,
)
PRAVEGA = Bundle(
    "pravega",
    f"Pravega {PRAVEGA_VERSION}",
    (
        Artifact("io.pravega", "pravega-standalone", PRAVEGA_VERSION),
        # An old one wins otherwise, and the controller does not start.
        Artifact("com.google.protobuf", "protobuf-java", "3.20.1"),
        Artifact("ch.qos.logback", "logback-classic", "1.2.13"),
    ),
    (
        # Two generations of Jersey: the old one takes the REST server down, and the controller with it.
        ("com.sun.jersey", "*"),
        ("com.sun.jersey.contribs", "*"),
        ("javax.ws.rs", "jsr311-api"),
        # Old versions of a part that is there as `bcprov-ext-jdk15on`: a class of each, and none works.
        ("org.bouncycastle", "bc-fips"),
        ("org.bouncycastle", "bcprov-jdk15on"),
        ("org.slf4j", "slf4j-reload4j"),
        ("org.slf4j", "slf4j-log4j12"),
    ),
)
SCHEMA_REGISTRY = Bundle(
    "schema-registry",
    f"Pravega Schema Registry {SCHEMA_REGISTRY_VERSION}",
    (
        Artifact("io.pravega", "schemaregistry-server", SCHEMA_REGISTRY_VERSION),
        # For Java programs that write events with schemas.
        Artifact("io.pravega", "schemaregistry-serializers", SCHEMA_REGISTRY_VERSION),
        Artifact("io.pravega", "schemaregistry-client", SCHEMA_REGISTRY_VERSION),
    ),
    (
        ("io.pravega", "pravega-keycloak-client"),
        # Its configuration writes a file into the current directory; slf4j-simple is there as well.
        ("ch.qos.logback", "*"),
        ("javax.ws.rs", "*"),
    ),
)
COMPILER = Bundle("compiler", "Eclipse's Java compiler", (Artifact("org.eclipse.jdt", "ecj", "3.40.0"),), _ALONE)
HIVE = Bundle(
    "hive",
    f"Hive metastore {HIVE_VERSION}",
    (Artifact("org.apache.hive", "hive-standalone-metastore", HIVE_VERSION),),
    (("jdk.tools", "jdk.tools"), ("org.slf4j", "slf4j-log4j12"), ("org.pentaho", "*")),
)
ICEBERG_SPARK = Bundle(
    "iceberg-spark",
    f"Iceberg {ICEBERG_VERSION} for Spark 4.1",
    (Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", ICEBERG_VERSION),),
    _ALONE,
)
DELTA_SPARK = Bundle(
    "delta-spark",
    f"Delta Lake {DELTA_VERSION} for Spark 4.1",
    (
        Artifact("io.delta", "delta-spark_4.1_2.13", DELTA_VERSION),
        Artifact("io.delta", "delta-storage", DELTA_VERSION),
    ),
    _ALONE,
)
SPARK_AVRO = Bundle(
    "spark-avro",
    f"Spark's functions of Avro {SPARK_VERSION}",
    (Artifact("org.apache.spark", "spark-avro_2.13", SPARK_VERSION),),
    # What Spark has.
    (("org.apache.spark", "*"), ("org.scala-lang", "*"), ("org.scala-lang.modules", "*")),
)
DEBEZIUM = Bundle(
    "debezium",
    f"Debezium Server {DEBEZIUM_VERSION}",
    (Artifact("io.debezium", "debezium-server-dist", DEBEZIUM_VERSION, "tar.gz"),),
    _ALONE,
)
SERVERS = (PULSAR, PRAVEGA, SCHEMA_REGISTRY, COMPILER)
"""What the servers of this package need, and programs that speak with them."""
ALL = (*SERVERS, HIVE, ICEBERG_SPARK, DELTA_SPARK, SPARK_AVRO, DEBEZIUM)
