"""The names of Iceberg's properties that a connection may hold, and what becomes of mistyped ones.

Catalogs and stores take properties that this package does not know, so an unknown name is passed on. One that is nearly
a known name is a mistake: the setting would be left out, and the table would be looked for elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.name_suggestion import nearest_name
from airflow_provider_streams.systems.connection.address import AddressRules
from airflow_provider_streams.systems.connection.option import Option

CATALOG_TYPES = ("rest", "hive", "glue", "dynamodb", "sql", "in-memory", "bigquery")
"""What pyiceberg knows; it need not be installed where connections are read."""

ADDRESS = AddressRules(
    kind="iceberg",
    option="uri",
    secure=("https",),
    plain=("http",),
    default="https",
    takes_others=True,  # a metastore's thrift://, a database's postgresql://
    schema_is_scheme=True,
)
"""How a connection says where the catalog is."""

FORM_OPTIONS: tuple[Option, ...] = (
    Option("type", "Which catalog it is; default: as the address tells", choices=CATALOG_TYPES, label="Catalog type"),
    Option("warehouse", "The catalog's warehouse: a name, or a place", placeholder="s3://tables"),
    Option("s3.endpoint", "The store of the tables' files, unless Amazon's", kind="http", label="S3 endpoint"),
    Option("s3.region", "The store's region", label="S3 region", placeholder="us-east-1"),
    Option("s3.access-key-id", "The key of the tables' files, if the catalog lends none", label="S3 access key id"),
    Option("s3.secret-access-key", "The secret that belongs to the key", secret=True, label="S3 secret access key"),
)
"""What the connection form shows; any other property goes into the extra field."""

CATALOG_NAMES = (
    *("type", "uri", "warehouse", "credential", "token", "scope", "audience", "resource", "prefix", "auth", "ssl"),
    *("oauth2-server-uri", "py-catalog-impl", "py-io-impl", "downcast-ns-timestamp-to-us-on-write"),
    *("namespace-separator", "rest-page-size", "snapshot-loading-mode", "scan-planning-mode"),
    *("view-endpoints-supported", "table-name", "init_catalog_tables", "pool_pre_ping", "echo", "owner", "location"),
    *("lock-check-max-wait-time", "lock-check-min-wait-time", "lock-check-retries"),
    *("rest.sigv4-enabled", "rest.sigv4.max-retries", "rest.signing-region", "rest.signing-name"),
    *(f"glue.{name}" for name in ("id", "endpoint", "max-retries", "retry-mode", "skip-archive")),
    *(
        f"{service}.{name}"
        for service in ("client", "glue", "dynamodb")
        for name in ("profile-name", "region", "access-key-id", "secret-access-key", "session-token")
    ),
    *("client.role-arn", "client.role-session-name"),
    *("hive.hive2-compatible", "hive.kerberos-authentication", "hive.kerberos-service-name"),
    *(f"gcp.bigquery.{name}" for name in ("credential-file", "credentials-info", "location", "project-id")),
)
S3_NAMES = tuple(
    f"s3.{name}"
    for name in (
        *("profile-name", "anonymous", "endpoint", "access-key-id", "secret-access-key", "session-token", "region"),
        *("resolve-region", "proxy-uri", "connect-timeout", "request-timeout", "signer", "signer.uri"),
        *("signer.endpoint", "role-arn", "role-session-name", "force-virtual-addressing", "retry-strategy-impl"),
        *("server-side-encryption", "sse-kms-key-id", "remote-signing-enabled", "tls-ca-file"),
    )
)
AZURE_NAMES = tuple(
    f"adls.{name}"
    for name in (
        *("connection-string", "credential", "account-name", "account-key", "sas-token", "tenant-id", "client-id"),
        *("client-secret", "account-host", "blob-storage-authority", "dfs-storage-authority", "blob-storage-scheme"),
        *("dfs-storage-scheme", "token", "anon"),
    )
)
OTHER_STORES = (
    *("hdfs.host", "hdfs.port", "hdfs.user", "hdfs.kerberos_ticket", "hf.endpoint", "hf.token"),
    *("gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.project-id", "gcs.access", "gcs.consistency"),
    *("gcs.cache-timeout", "gcs.requester-pays", "gcs.session-kwargs", "gcs.service.host"),
    *("gcs.default-bucket-location", "gcs.version-aware"),
)
ICEBERG_NAMES = (*CATALOG_NAMES, *S3_NAMES, *AZURE_NAMES, *OTHER_STORES)

_ANY = ("header.", "auth.", "ssl.")
"""Names that begin so go on with the user's own words."""
_MEANT = {"url": "uri", "catalog-type": "type"}
_LIKENESS, _LIKENESS_OF_DOTTED = 0.75, 0.88
"""Names with the same prefix are alike already."""


def refuse_near_misses(conn_id: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    """Refuse a name that is nearly a known one.

    Raises:
        InvalidRequest: with the name that was meant.
    """
    names = tuple(known)
    for name, value in given.items():
        meant = None if value in (None, "") else _meant(name, names)
        if meant is not None:
            raise InvalidRequest(f"connection {conn_id!r}: extra {name!r} is not known; did you mean {meant!r}?")


def _meant(name: str, known: tuple[str, ...]) -> str | None:
    if name in known or name.startswith(_ANY):
        return None
    folded, dashed = _dashed(name), {_dashed(one): one for one in known}
    if "." in folded:
        near = nearest_name(folded, dashed, likeness=_LIKENESS_OF_DOTTED)
    else:
        near = _MEANT.get(folded) or nearest_name(folded, dashed, likeness=_LIKENESS) or _suffix(folded, dashed)
    return dashed.get(near) if near else None


def _dashed(name: str) -> str:
    return name.lower().replace("_", "-")


def _suffix(name: str, known: Iterable[str]) -> str | None:
    """`endpoint` of `s3.endpoint`."""
    return next((one for one in known if one.endswith(f".{name}")), None)
