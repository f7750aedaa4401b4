"""moto's Glue with what it lacks: Amazon's refuses an update of a table that was made on an older version of it."""

from __future__ import annotations

import sys
from threading import Lock

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.server import main

_at_once = Lock()
_update = GlueResponse.update_table


def _update_table(self: GlueResponse) -> object:
    given, made_on = self.parameters, self.parameters.get("VersionId")
    with _at_once:
        table = self.glue_backend.get_table(given["DatabaseName"], given["TableInput"]["Name"])
        if made_on is not None and made_on != table.as_dict()["VersionId"]:
            raise JsonRESTError("ConcurrentModificationException", f"the table is of another version than {made_on}")
        return _update(self)


GlueResponse.update_table = _update_table
main(sys.argv[1:])
