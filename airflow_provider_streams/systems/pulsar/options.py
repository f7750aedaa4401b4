"""Every setting of a connection to Pulsar, and what names topics in `spark.read.format("pulsar")`."""

from __future__ import annotations

from airflow_provider_streams.systems.option import Option

OPTIONS: tuple[Option, ...] = (
    Option(
        "service_url",
        "Brokers: pulsar://host:6650 or pulsar+ssl://host:6651, several hosts between commas; wins over a "
        "connection's host and port",
        aliases=("service.url", "serviceUrl"),
        variables=("PULSAR_SERVICE_URL",),
        is_address=True,
        label="Service URL",
        placeholder="pulsar+ssl://broker-1:6651,broker-2:6651",
    ),
    Option(
        "admin_url",
        "REST service: http://host:8080 or https://..; planning and sensors ask it",
        aliases=("admin.url", "adminUrl"),
        variables=("PULSAR_ADMIN_URL",),
        is_address=True,
        label="Admin URL",
        placeholder="https://broker.example.com:8443",
    ),
    Option("token", "The token (JWT) itself", secret=True),
    Option(
        "token_file",
        "A file that holds the token, read again at every use",
        reads="file",
        placeholder="/run/secrets/pulsar-token",
    ),
    Option("token_env", "The environment variable that holds the token", reads="variable", label="Token variable"),
    Option(
        "tls_ca_file",
        "Certificates (PEM) to trust instead of the system's",
        label="CA file",
        placeholder="/etc/ssl/pulsar-ca.pem",
    ),
    Option(
        "tls_verify_hostname",
        "Whether a certificate must name the host we call",
        "true",
        kind="flag",
        label="Verify host names",
    ),
    Option("tls_cert_file", "Our client certificate (PEM)", reads="file", label="Client certificate"),
    Option("tls_key_file", "The key of our client certificate (PEM)", reads="file", label="Client key"),
    Option(
        "allowed_hosts",
        "Hosts besides the given ones that brokers may send us to, with our token; *.example.com is all below it",
        kind="names",
    ),
    Option("rewrite_redirects", "Whether to call the given host when told to call another one", "false", kind="flag"),
    Option("listener_name", "The brokers' advertised listener to ask for"),
    Option("request_timeout_seconds", "How long one request may take", "30", kind="seconds", label="Request timeout"),
    Option(
        "stall_seconds",
        "How long a read may make no progress while there is more to come",
        "60",
        kind="seconds",
        label="Stall limit",
    ),
    Option(
        "max_entry_bytes",
        "The largest entry that is read, decompressed and put together of its chunks; at most 536870912",
        "268435456",
        kind="count",
        label="Largest entry",
    ),
    Option(
        "max_entry_rows",
        "The most messages of an entry that is read, and properties of them all",
        "1000000",
        kind="count",
        label="Most messages",
    ),
    Option(
        "max_entry_ratio",
        "How many times its stored size an entry that is read may decompress to; 16 MiB are always allowed",
        "1000",
        kind="count",
        label="Highest compression",
    ),
)

SOURCE_OPTIONS: tuple[Option, ...] = (
    Option("topic", "one topic"),
    Option("topics", "topics, comma separated"),
    Option("topicsPattern", "a pattern of topics", aliases=("topics_pattern",)),
    Option("partitions", "only these partitions of each Pulsar topic, comma separated"),
    Option("keys", "only Pulsar messages with these keys, comma separated"),
    Option(
        "key_hash_ranges",
        "only Pulsar messages whose keys' hashes are in these ranges, like 0-1023,4096-8191",
        aliases=("keyHashRanges",),
    ),
)
