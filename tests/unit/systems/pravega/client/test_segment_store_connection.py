from __future__ import annotations

import pytest

from airflow_provider_streams.errors import RedirectRefused
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.client.segment_store_connection import AsyncConnection, Connection


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "store.evil"])
async def test_a_controller_leads_to_no_host_that_is_not_called(host):
    narrow = Endpoint("tcp://controller.example", allowed_hosts=("*.pravega.svc",))
    wide = Endpoint("tcp://controller.example")
    for endpoint in [narrow] if host == "store.evil" else [narrow, wide]:
        with pytest.raises(RedirectRefused, match=host):
            Connection(endpoint, (host, 9))
        with pytest.raises(RedirectRefused, match=host):
            await AsyncConnection.open(endpoint, (host, 9))
