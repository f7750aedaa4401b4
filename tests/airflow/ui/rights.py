"""The auth manager of the page's tests.

`admin` reads all DAGs, `shopkeeper` those of the shop, `newcomer` those called `new_..`, `stranger` none.
"""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


class Rights(SimpleAuthManager):
    """Airflow's simple one, with a rule for each DAG."""

    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        """By user, and by the DAG's name."""
        name = user.get_name()
        if name == "stranger":
            return False
        allowed = {"shopkeeper": "shop_", "newcomer": "new_"}.get(name, "")
        if details is not None and details.id and not details.id.startswith(allowed):
            return False
        return super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details)
