from __future__ import annotations

import json

import pytest
from airflow.sdk import Connection

from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.hooks.azure_properties import azure_properties


def azure(login=None, password=None, conn_type="wasb", **extra):
    return Connection(conn_id="lake", conn_type=conn_type, login=login, password=password, extra=json.dumps(extra))


def test_an_account_and_its_key_are_understood():
    assert azure_properties(azure("shop", "a2V5")) == {"adls.account-name": "shop", "adls.account-key": "a2V5"}
    assert azure_properties(azure("shop", shared_access_key="b3RoZXI="))["adls.account-key"] == "b3RoZXI="


def test_with_a_tenant_login_and_password_are_an_applications():
    assert azure_properties(azure("app", "canary-of-app", tenant_id="tenant", conn_type="adls")) == {
        "adls.client-id": "app",
        "adls.client-secret": "canary-of-app",
        "adls.tenant-id": "tenant",
    }


@pytest.mark.parametrize("token", ["sv=2020&sig=abc", "?sv=2020&sig=abc"])
def test_a_signature_has_no_mark_of_a_query(token):
    assert azure_properties(azure("shop", sas_token=token))["adls.sas-token"] == "sv=2020&sig=abc"


def test_properties_of_file_io_win():
    told = azure("shop", "a2V5", **{"adls.account-key": "bmV3", "adls.blob-storage-authority": ".blob.example"})
    assert azure_properties(told) == {
        "adls.account-name": "shop",
        "adls.account-key": "bmV3",
        "adls.blob-storage-authority": ".blob.example",
    }


@pytest.mark.parametrize("asked", ["connection_string", "managed_identity_client_id", "workload_identity_tenant_id"])
def test_what_executors_cannot_follow_is_refused(asked):
    with pytest.raises(InvalidRequest, match=asked) as raised:
        azure_properties(azure(**{asked: "canary-of-azure"}))
    assert "canary-of-azure" not in str(raised.value)


def test_its_secrets_are_concealed_from_errors():
    azure_properties(azure("shop", "canary-of-the-key", sas_token="canary-of-the-signature"))
    error = str(SinkError("abfss://lake@shop", "canary-of-the-key and canary-of-the-signature failed"))
    assert "canary" not in error
