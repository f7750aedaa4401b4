from __future__ import annotations

import json

import pytest
from airflow.sdk import Connection

from airflow_provider_streams.connections.store_properties import azure_properties, s3_properties
from airflow_provider_streams.errors import InvalidRequest, SinkError


def aws(login=None, password=None, **extra):
    return Connection(conn_id="lake", conn_type="aws", login=login, password=password, extra=json.dumps(extra))


def test_the_names_of_amazons_provider_are_understood():
    told = aws(
        "key", "secret", aws_session_token="session-5d", region_name="eu-west-1", endpoint_url="http://127.0.0.1:8333"
    )
    assert s3_properties(told) == {
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.session-token": "session-5d",
        "s3.region": "eu-west-1",
        "s3.endpoint": "http://127.0.0.1:8333",
    }


@pytest.mark.parametrize(
    "extra", [{"endpoint_url": "http://me:canary-8d@store"}, {"s3.endpoint": "me:canary-8d@store"}]
)
def test_an_address_with_a_password_is_refused_without_it(extra):
    with pytest.raises(InvalidRequest, match="without name and password") as raised:
        s3_properties(aws(**extra))
    assert "canary-8d" not in str(raised.value)


def test_keys_may_be_extras_and_a_store_has_an_address_of_its_own():
    told = aws(
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        endpoint_url="http://all",
        service_config={"s3": {"endpoint_url": "http://store"}, "sts": {"endpoint_url": "http://sts"}},
    )
    assert s3_properties(told) == {
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.endpoint": "http://store",
    }


def test_a_property_may_have_its_own_name():
    told = aws("key", "secret", **{"s3.region": "us-east-1", "s3.force-virtual-addressing": "true"})
    assert s3_properties(told)["s3.region"] == "us-east-1"
    assert s3_properties(told)["s3.force-virtual-addressing"] == "true"


HTTPS, HTTP = "https://store", "http://store"
OWN = {"s3": {"endpoint_url": HTTP}}


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"endpoint_url": HTTPS, "s3.endpoint": HTTP}, "extra endpoint_url and extra s3.endpoint"),
        ({"endpoint_url": HTTPS, "s3.endpoint": "https://other"}, "extra endpoint_url and extra s3.endpoint"),
        (
            {"endpoint_url": HTTPS, "service_config": OWN},
            "extra service_config.s3.endpoint_url and extra endpoint_url",
        ),
        (
            {"s3.endpoint": HTTPS, "service_config": OWN},
            "extra service_config.s3.endpoint_url and extra s3.endpoint",
        ),
        ({"region_name": "eu-west-1", "s3.region": "us-east-1"}, "extra region_name and extra s3.region"),
        ({"aws_access_key_id": "other"}, "login and extra aws_access_key_id"),
        ({"aws_secret_access_key": "canary-94"}, "password and extra aws_secret_access_key"),
        ({"s3.secret-access-key": "canary-94"}, "password and extra s3.secret-access-key"),
    ],
)
def test_two_places_that_differ_are_refused(extra, said):
    with pytest.raises(InvalidRequest, match=f"'lake' contradicts itself: {said} say different things") as caught:
        s3_properties(aws("key", "canary-93", **extra))
    assert "canary" not in str(caught.value)


def test_two_places_may_say_the_same():
    told = aws("key", "secret", aws_access_key_id="key", endpoint_url="HTTPS://store", **{"s3.endpoint": HTTPS})
    assert s3_properties(told) == {
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.endpoint": HTTPS,
    }


@pytest.mark.parametrize("read", [s3_properties, azure_properties])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": 9000}, "does not use the field port"),
        ({"schema": "lake"}, "does not use the field schema"),
        ({"extra": {"extra__aws__endpoint_url": HTTPS}}, "'extra__aws__endpoint_url' is .*: write 'endpoint_url'"),
        ({"extra": {"extra__wasb__sas_token": "canary-92"}}, "'extra__wasb__sas_token' is .*: write 'sas_token'"),
        ({"extra": {"ssl_verify": False}}, "certificates are always checked.* leave out 'ssl_verify'"),
    ],
)
def test_what_is_never_used_is_refused_by_name(read, given, said):
    known = Connection(conn_id="lake", **{**given, "extra": json.dumps(given.get("extra", {}))})
    with pytest.raises(InvalidRequest, match=f"'lake'.*{said}") as caught:
        read(known)
    assert "canary" not in str(caught.value)


def test_an_empty_connection_leaves_it_to_the_environment():
    assert s3_properties(aws()) == {}
    assert s3_properties(aws(verify=True, service_config=None)) == {}


@pytest.mark.parametrize("extra", [{"role_arn": "arn:aws:iam::1:role/x"}, {"profile_name": "x"}, {"verify": False}])
def test_what_executors_cannot_do_is_refused_by_name(extra):
    with pytest.raises(InvalidRequest, match=f"'lake'.*{next(iter(extra))}"):
        s3_properties(aws("key", "secret", **extra))


def test_no_error_shows_a_key():
    s3_properties(aws("canary-login-81", "canary-password-81", aws_session_token="canary-token-81"))
    told = str(SinkError("s3://lake", "refused canary-login-81 canary-password-81 canary-token-81"))
    assert "canary" not in told


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


def test_properties_of_file_io_are_taken():
    told = azure("shop", **{"adls.account-key": "bmV3", "adls.blob-storage-authority": ".blob.example"})
    assert azure_properties(told) == {
        "adls.account-name": "shop",
        "adls.account-key": "bmV3",
        "adls.blob-storage-authority": ".blob.example",
    }


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"sas_token": "canary-90"}, "adls.account-key and adls.sas-token are credentials of the same account"),
        ({"adls.account-key": "canary-90"}, "password and extra adls.account-key"),
        ({"account_name": "other"}, "login and extra account_name"),
        ({"tenant_id": "t", "sas_token": "canary-90"}, "adls.sas-token and adls.client-secret are credentials"),
    ],
)
def test_an_account_has_one_credential(extra, said):
    with pytest.raises(InvalidRequest, match=f"'lake' contradicts itself: {said}") as caught:
        azure_properties(azure("shop", "canary-91", **extra))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("half", ["adls.blob-storage-scheme", "adls.dfs-storage-scheme"])
def test_an_account_is_not_half_without_tls(half):
    with pytest.raises(InvalidRequest, match=f"contradicts itself: .*{half}.*same account"):
        azure_properties(azure("shop", **{half: "HTTP"}))
    assert azure_properties(azure("shop", **{half: "https"}))[half] == "https"


@pytest.mark.parametrize("scheme", ["http", "HTTP", "Https"])
def test_capital_letters_of_an_accounts_scheme_do_not_matter(scheme):
    told = azure("shop", **{"adls.blob-storage-scheme": scheme, "adls.dfs-storage-scheme": scheme})
    assert azure_properties(told)["adls.blob-storage-scheme"] == scheme.lower()


@pytest.mark.parametrize("asked", ["connection_string", "managed_identity_client_id", "workload_identity_tenant_id"])
def test_what_executors_cannot_follow_is_refused(asked):
    with pytest.raises(InvalidRequest, match=asked) as raised:
        azure_properties(azure(**{asked: "canary-of-azure"}))
    assert "canary-of-azure" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"host": "http://shop.blob.core.windows.net"}, "does not use the field host.*adls.blob-storage-scheme"),
        ({"account_url": "http://shop.blob.core.windows.net"}, "does not use the extra account_url"),
        ({"adls.connection-string": "DefaultEndpointsProtocol=http;AccountKey=canary-85"}, "adls.connection-string"),
        ({"adls.account-host": "shop.example"}, "adls.account-host: give adls.blob-storage-authority"),
        ({"adls.blob-storage-scheme": "ftp"}, "adls.blob-storage-scheme is http or https"),
        ({"proxies": {"http": "x"}}, "proxies"),
    ],
)
def test_no_address_of_an_account_is_left_out(given, said):
    host = given.pop("host", None)
    extra = json.dumps(given)
    known = Connection(conn_id="lake", conn_type="wasb", host=host, login="shop", password="canary-85", extra=extra)
    with pytest.raises(InvalidRequest, match=f"'lake'.*{said}") as caught:
        azure_properties(known)
    assert "canary" not in str(caught.value)


def test_the_name_of_an_account_may_be_an_extra():
    told = azure_properties(azure("app", "canary-of-app", tenant_id="tenant", account_name="shop"))
    assert (told["adls.account-name"], told["adls.client-id"]) == ("shop", "app")


def test_its_secrets_are_masked_in_errors():
    azure_properties(azure("shop", "canary-of-the-key"))
    azure_properties(azure("shop", sas_token="canary-of-the-signature"))
    error = str(SinkError("abfss://lake@shop", "canary-of-the-key and canary-of-the-signature failed"))
    assert "canary" not in error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"login": "canary-82"}, "s3.access-key-id is given without s3.secret-access-key"),
        ({"password": "canary-82"}, "s3.secret-access-key is given without s3.access-key-id"),
        ({"host": "http://store"}, "of type 'aws' does not use the extra host, .*endpoint_url"),
        ({"use_ssl": False}, "of type 'aws' does not use the extra use_ssl, .*endpoint_url"),
        ({"region": "eu-1"}, "of type 'aws' does not use the extra region, .*region_name"),
        ({"s3.sse-kms-key-id": "canary-82"}, "are not reached by s3.sse-kms-key-id: let the bucket encrypt"),
        ({"s3.profile-name": "x"}, "are not reached by s3.profile-name: give keys, or set AWS_PROFILE"),
        ({"aws_session_token": "canary-82"}, "s3.session-token is given without s3.access-key-id"),
        (
            {"login": "k", "password": "canary-82", "endpoint_url": "store:9000"},
            "the address of a store \\(s3.endpoint\\) has no scheme",
        ),
    ],
)
def test_halves_and_what_the_tasks_would_ignore_are_refused(given, said):
    with pytest.raises(InvalidRequest, match=f"'lake'.* {said}") as caught:
        s3_properties(aws(**given))
    assert "canary" not in str(caught.value)


def test_half_an_application_is_refused():
    with pytest.raises(InvalidRequest, match=r"adls\.client-secret is given without adls\.client-id"):
        azure_properties(azure(password="canary-83", tenant_id="tenant"))


def test_capital_letters_of_a_scheme_do_not_matter():
    assert s3_properties(aws(endpoint_url="HTTPS://Store:9000"))["s3.endpoint"] == "https://Store:9000"


@pytest.mark.parametrize("kind", ["aws", "generic"])
def test_the_address_of_a_store_is_not_left_out(kind):
    given = Connection(conn_id="lake", conn_type=kind, host="store", port=9000, login="k", password="canary-84")
    with pytest.raises(InvalidRequest, match=r"'lake' .*does not use the field host.*endpoint_url") as caught:
        s3_properties(given)
    assert "canary" not in str(caught.value)
