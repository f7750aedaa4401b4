from __future__ import annotations

import base64
import datetime as dt
import pickle
from dataclasses import fields

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pulsar.client.endpoint import Address, Endpoint, parse_service_url

URL = "pulsar://broker:6650"


def test_options_are_the_fields_of_an_endpoint():
    assert {option.name for option in Endpoint.options()} == {one.name for one in fields(Endpoint)}
    assert [option.name for option in Endpoint.options() if option.secret] == ["token"]


@pytest.mark.parametrize("name", ["service_url", "service.url", "serviceUrl", "SERVICEURL", "SERVICE_URL"])
def test_names_are_compared_without_case_and_peers_names_are_aliases(name):
    assert Endpoint.from_options({name: URL, "unknown": "x"}) == Endpoint(URL)


def test_options_round_trip_with_secrets():
    endpoint = Endpoint(
        "pulsar+ssl://a:1,b:2",
        "https://a:8443",
        token="secret",
        tls_ca_file="/ca",
        tls_verify_hostname=False,
        allowed_hosts=("x", "y"),
        rewrite_redirects=True,
        listener_name="outside",
        request_timeout_seconds=1.5,
        stall_seconds=7,
    )
    assert Endpoint.from_options(endpoint.to_options()) == endpoint
    assert Endpoint(URL).to_options() == {"service_url": URL}
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint  # noqa: S301 - our own


def test_the_token_is_in_no_text():
    endpoint = Endpoint(URL, token="hidden-token")
    assert "hidden-token" not in repr(endpoint) + str(endpoint)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"service_url": ""},
        {"service_url": "http://broker:8080"},
        {"service_url": "broker:6650"},
        {"service_url": "pulsar://"},
        {"service_url": "pulsar://a,,b"},
        {"service_url": "pulsar://broker:port"},
        {"service_url": "pulsar://broker:99999"},
        {"service_url": "pulsar://user:hidden-token@broker"},
        {"service_url": URL, "admin_url": "broker:8080"},
        {"service_url": URL, "admin_url": "http://user:hidden-token@broker"},
        {"service_url": URL, "token": "hidden-token", "token_file": "/f"},
        {"service_url": URL, "tls_cert_file": "/c"},
        {"service_url": URL, "tls_verify_hostname": "perhaps"},
        {"service_url": URL, "stall_seconds": "soon"},
        {"service_url": URL, "stall_seconds": "0"},
        {"service_url": URL, "request_timeout_seconds": "nan"},
        {"service_url": URL, "request_timeout_seconds": "inf"},
    ],
)
def test_malformed_settings_are_refused_without_showing_secrets(options):
    with pytest.raises(InvalidRequest) as caught:
        Endpoint.from_options(options)
    assert "hidden-token" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["/admin", "/admin/", "/admin/v2", "//admin//v3/", "/pulsar/admin/v2", "/admin/v2/tenants"]
)
def test_an_admin_url_with_the_path_of_the_api_is_refused(path):
    with pytest.raises(InvalidRequest) as caught:
        Endpoint(URL, f"https://broker:8443{path}")
    assert str(caught.value).startswith("admin_url must not hold the path /")
    assert str(caught.value).endswith("for example https://broker:8443")


@pytest.mark.parametrize("path", ["", "/", "/pulsar", "/pulsar/", "/admins", "/pulsar-admin", "/pulsar/admin", "/v2"])
def test_the_path_of_a_proxy_comes_before_that_of_the_api(path):
    route = Endpoint(URL, f"http://proxy:8080{path}").route()
    assert route.url("admin/v2/tenants") == f"http://proxy:8080{path.rstrip('/')}/admin/v2/tenants"


def test_several_hosts_with_default_ports():
    assert parse_service_url("pulsar://a,b:7000,[::1]") == (
        Address("a", 6650),
        Address("b", 7000),
        Address("::1", 6650),
    )
    assert parse_service_url("pulsar+ssl://a/") == (Address("a", 6651, tls=True),)
    assert str(Address("::1", 6651, tls=True)) == "pulsar+ssl://[::1]:6651"


def test_a_token_is_read_when_it_is_used(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text("one\n")
    from_file, from_env = Endpoint(URL, token_file=str(file)), Endpoint(URL, token_env="OUR_TOKEN")
    assert from_file.token_value() == "one"
    file.write_text("two")
    assert from_file.token_value() == "two"
    monkeypatch.setenv("OUR_TOKEN", "three")
    assert from_env.token_value() == "three"
    assert Endpoint(URL, token="four").token_value() == "four"
    assert Endpoint(URL).token_value() is None


def test_a_token_that_is_not_there_names_its_place(tmp_path):
    with pytest.raises(InvalidRequest, match="OUR_MISSING_TOKEN"):
        Endpoint(URL, token_env="OUR_MISSING_TOKEN").token_value()
    with pytest.raises(InvalidRequest, match=r"nowhere"):
        Endpoint(URL, token_file=str(tmp_path / "nowhere")).token_value()


@pytest.mark.parametrize(
    "text", ['{"token": "hidden-token"}', '{"token":"hidden-token"}', '{\n  "token": "hidden-token"\n}']
)
def test_a_token_that_is_a_json_object_is_called_so(tmp_path, monkeypatch, text):
    (tmp_path / "token").write_text(text)
    monkeypatch.setenv("OUR_TOKEN", text)
    for ask in (
        lambda: Endpoint(URL, token=text),
        lambda: Endpoint(URL, token_file=str(tmp_path / "token")).token_value(),
        lambda: Endpoint(URL, token_env="OUR_TOKEN").token_value(),
    ):
        with pytest.raises(InvalidRequest, match="holds a JSON object and not a token") as caught:
            ask()
        assert "hidden-token" not in str(caught.value)


def test_one_description_serves_rest_and_wire(tmp_path):
    endpoint = Endpoint(URL, token="jwt")
    assert endpoint.headers() == {"Authorization": "Bearer jwt", "X-Pulsar-Auth-Method-Name": "token"}
    assert (endpoint.auth_method, endpoint.auth_data()) == ("token", b"jwt")
    certificate = Endpoint(URL, tls_cert_file="/c", tls_key_file="/k")
    assert (certificate.auth_method, certificate.auth_data()) == ("tls", b"")
    assert certificate.headers() == {"X-Pulsar-Auth-Method-Name": "tls"}
    assert (Endpoint(URL).auth_method, Endpoint(URL).headers()) == ("", {})
    with pytest.raises(InvalidRequest, match="/c"):
        certificate.ssl_context()


def test_the_official_client_takes_our_arguments():
    pulsar = pytest.importorskip("pulsar")
    endpoint = Endpoint("pulsar+ssl://127.0.0.1:1", token="jwt", tls_ca_file="/ca", listener_name="l")
    arguments = endpoint.client_arguments()
    assert arguments["tls_validate_hostname"] is True
    assert "jwt" not in repr(arguments)
    pulsar.Client(**arguments).close()


def test_certificates_are_always_checked_and_names_by_default():
    import ssl

    assert Endpoint(URL).ssl_context().check_hostname
    lax = Endpoint(URL, tls_verify_hostname=False).ssl_context()
    assert (lax.check_hostname, lax.verify_mode) == (False, ssl.CERT_REQUIRED)


@pytest.mark.parametrize(
    "text", ["hidden-one\nhidden-two", "hidden one", "hidden\r", "hiddén-token", "hidden-token\0", "\u2028hidden-token"]
)
def test_a_token_of_several_lines_is_refused_unseen_wherever_it_stands(text, tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text(f"-{text}-")
    monkeypatch.setenv("OUR_TOKEN", f"-{text}-".replace("\0", "\1"))
    for given in ({"token": text}, {"token_file": str(file)}, {"token_env": "OUR_TOKEN"}):
        with pytest.raises(InvalidRequest, match="line break") as caught:
            Endpoint(URL, **given).headers()
        assert "hidd" not in str(caught.value)


def test_what_stands_in_the_field_of_a_place_is_not_shown(tmp_path):
    for given in ({"token_file": "hidden-token"}, {"token_env": "hidden-token"}):
        with pytest.raises(InvalidRequest) as caught:
            Endpoint(URL, **given).headers()
        assert "hidden-token" not in str(caught.value)


@pytest.mark.parametrize("content", [b"x" * 70_000, b"\xff\xfe"])
def test_a_file_that_holds_no_token_is_refused_in_bounded_memory(content, tmp_path):
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(InvalidRequest, match="token_file"):
        Endpoint(URL, token_file=str(tmp_path / "token")).token_value()


def test_a_pipe_is_no_token_file(tmp_path):
    import os

    os.mkfifo(tmp_path / "token")
    with pytest.raises(InvalidRequest, match="is no file"):
        Endpoint(URL, token_file=str(tmp_path / "token")).token_value()


def test_a_token_tells_when_it_expires():
    def jwt(claims):
        return "e30." + base64.urlsafe_b64encode(claims).decode().rstrip("=") + ".sig"

    assert Endpoint(URL, token=jwt(b'{"exp": 86400}')).token_expiry() == dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
    for odd in (jwt(b"{}"), jwt(b"[]"), jwt(b'{"exp": 1e99}'), jwt(b'{"exp": "x"}'), "a.b.c", "plain", ""):
        assert Endpoint(URL, token=odd).token_expiry() is None
