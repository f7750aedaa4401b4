"""A stream system that needs no server: shards of numbered events, the same in every process.

Event `n` of a shard was published at `epoch + n * interval_ms` and holds `<shard>:<n>`, padded with dots. What the
"server" holds is decided by the options, or by a JSON file of the same names (`server_state`), which is read again at
every
call: a test that changes the file changes what every process sees. `dump(path, ..)` writes such a file.

Faults (option `fault`, several separated by commas):

| fault | what the reader does |
|---|---|
| `drop:<shard>:<n>` | never delivers event n; nothing explains it |
| `trim:<shard>:<n>` | finds, while reading, that everything before n is gone |
| `fail:<shard>` | fails once, `SystemUnavailable`; later attempts succeed (needs `server_state`) |
| `crash:<shard>` | kills its process once (needs `server_state`) |
| `slow:<milliseconds>` | waits before each batch but the first |
| `hold` | before each batch but the first, makes `<truth>.held.<pid>` and waits while `<truth>.hold[.<pid>]` is there |
"""

from airflow_provider_streams.testing.fake.server_state import EPOCH, Truth, dump, value_of
from airflow_provider_streams.testing.fake.source import FakeSource
from airflow_provider_streams.testing.fake.system import FakeSystem

__all__ = ["EPOCH", "FakeSource", "FakeSystem", "Truth", "dump", "value_of"]
