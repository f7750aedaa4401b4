from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.pravega.source import PravegaSource


def test_a_source_says_which_system_and_asset_it_is():
    source = PravegaSource("shop/orders", conn_id="v")
    assert (source.system, source.key, source.asset_uri) == (
        "pravega",
        "pravega:v:shop/orders",
        "pravega://v/shop/orders",
    )
    assert isinstance(source, Source)
