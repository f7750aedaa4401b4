from __future__ import annotations

import pytest

from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.delta.storage import errors_of, object_store_options
from airflow_provider_streams.lake.storage import Storage


def test_a_connection_reaches_delta_rs_by_its_own_names():
    told = {
        "client.region": "eu-west-1",
        "s3.endpoint": "http://127.0.0.1:8333",
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.session-token": "",
        "s3.request-timeout": "20",
        "warehouse": "s3://tables",
    }
    assert object_store_options(Storage("s3://lake/orders", told)) == {
        "AWS_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:8333",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:8333",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ALLOW_INVALID_CERTIFICATES": "false",
        "AWS_SKIP_SIGNATURE": "false",
        "timeout": "20s",
        "aws_conditional_put": "etag",
    }


NOT_FROM_THE_ENVIRONMENT = {
    "AZURE_ALLOW_HTTP": "false",
    "AZURE_ALLOW_INVALID_CERTIFICATES": "false",
    "AZURE_SKIP_SIGNATURE": "false",
    "AZURE_STORAGE_USE_EMULATOR": "false",
}
AZURE = "abfss://lake@shop.dfs.core.windows.net/orders"


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        ({"adls.account-key": "a2V5"}, {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}),
        (
            {"adls.client-id": "app", "adls.client-secret": "secret", "adls.tenant-id": "tenant"},
            {
                "AZURE_STORAGE_CLIENT_ID": "app",
                "AZURE_STORAGE_CLIENT_SECRET": "secret",
                "AZURE_STORAGE_TENANT_ID": "tenant",
            },
        ),
        (
            {"adls.blob-storage-authority": ".blob.core.chinacloudapi.cn"},
            {
                "AZURE_STORAGE_ENDPOINT": "https://shop.blob.core.chinacloudapi.cn",
            },
        ),
        (
            {"adls.blob-storage-authority": "127.0.0.1:10000", "adls.blob-storage-scheme": "http"},
            {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:10000/shop", "AZURE_ALLOW_HTTP": "true"},
        ),
    ],
)
def test_an_azure_account_is_the_one_of_the_address(told, taken):
    for named in ({}, {"adls.account-name": "shop"}):
        options = object_store_options(Storage(AZURE, {**told, **named}))
        assert options == {"AZURE_STORAGE_ACCOUNT_NAME": "shop", **NOT_FROM_THE_ENVIRONMENT, **taken}
    with pytest.raises(InvalidRequest, match="account is shop"):
        object_store_options(Storage(AZURE, {**told, "adls.account-name": "other"}))


def test_plain_http_is_used_only_on_request():
    told = object_store_options(Storage("s3://lake/orders", {"s3.endpoint": "https://store"}))
    assert told["AWS_ALLOW_HTTP"] == "false"


def test_a_path_needs_nothing():
    assert object_store_options(Storage("file:///lake/orders")) == {}


@pytest.mark.parametrize("asked", ["s3.role-arn", "client.role-arn", "s3.tls-ca-file"])
def test_options_that_delta_rs_lacks_are_refused_and_not_forgotten(asked):
    with pytest.raises(InvalidRequest, match=asked):
        object_store_options(Storage("s3://lake/orders", {asked: "x"}))


def test_an_authority_is_accepted_if_the_process_also_has_it(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/ca.pem")
    assert object_store_options(Storage("s3://lake/orders", {"s3.tls-ca-file": "/ca.pem"}))
    with pytest.raises(InvalidRequest, match="SSL_CERT_FILE"):
        object_store_options(Storage("s3://lake/orders", {"s3.tls-ca-file": "/other.pem"}))


def test_a_panic_is_an_error_and_an_end_is_none():
    class PanicException(BaseException):
        pass

    with pytest.raises(SinkError, match="Forked"), errors_of(Storage("file:///lake")):
        raise PanicException("Forked process detected")
    with pytest.raises(KeyboardInterrupt), errors_of(Storage("file:///lake")):
        raise KeyboardInterrupt
