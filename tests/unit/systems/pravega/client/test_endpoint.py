from __future__ import annotations

import pickle
from dataclasses import fields

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint

URI = "tcp://controller:9090"


def test_options_are_the_fields_of_an_endpoint():
    assert {option.name for option in Endpoint.options()} == {one.name for one in fields(Endpoint)}
    assert [option.name for option in Endpoint.options() if option.secret] == [
        "registry_password",
        "registry_token",
        "password",
        "token",
    ]


@pytest.mark.parametrize("name", ["controller", "controllerUri", "controller_uri", "CONTROLLERURI"])
def test_names_are_compared_without_case_and_peers_names_are_aliases(name):
    assert Endpoint.from_options({name: URI, "unknown": "x"}) == Endpoint(URI)


@pytest.mark.parametrize("scheme", ["tcp", "pravega", "tls", "ssl", "tcps", "pravegas"])
def test_the_scheme_decides_about_tls(scheme):
    endpoint = Endpoint(f"{scheme}://a:1,b,[::1]:3")
    assert endpoint.tls is (scheme not in {"tcp", "pravega"})
    assert endpoint.controllers == (("a", 1), ("b", 9090), ("::1", 3))


@pytest.mark.parametrize(
    "uri", ["controller:9090", "http://a:9090", "tcp://", "tcp://a:x", "tcp://a/path", "tcp://u:pw@a:1"]
)
def test_other_addresses_are_refused_without_their_credentials(uri):
    with pytest.raises(InvalidRequest) as refused:
        Endpoint.from_options({"controller": uri})
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "controller is missing"),
        ({"controller": URI, "auth_method": "kerberos"}, "auth_method must be one of"),
        ({"controller": URI, "auth_method": "basic", "username": "u"}, "needs the option password"),
        ({"controller": URI, "username": "u"}, "needs the option password"),
        ({"controller": URI, "password": "p"}, "the password has no user: set the option username"),
        ({"controller": URI, "auth_method": "bearer"}, "needs the option token"),
        ({"controller": URI, "username": "u", "token": "t"}, "username and token are both given"),
        ({"controller": URI, "username": "u", "keycloak_file": "/f"}, "username and keycloak_file are both given"),
        (
            {"controller": URI, "username": "u", "password": "p", "token": "t"},
            "^password and token are given, and only one of them is sent",
        ),
        ({"controller": URI, "token": "t", "keycloak_file": "/f"}, "^token and keycloak_file are given"),
        ({"controller": URI, "allowed_hosts": " , "}, "allowed_hosts holds no name"),
        ({"controller": URI, "stall_seconds": "0"}, "stall_seconds must be positive"),
        ({"controller": URI, "stall_seconds": "nan"}, "stall_seconds must be positive"),
        ({"controller": URI, "request_timeout_seconds": "inf"}, "request_timeout_seconds must be positive"),
        ({"controller": URI, "request_timeout_seconds": "1e300"}, "86,400 at most"),
        ({"controller": URI, "read_ahead": "1000000"}, "read_ahead must be positive, and 64 at most"),
        ({"controller": URI, "max_event_bytes": str(1 << 31)}, "max_event_bytes must be positive"),
        ({"controller": URI, "username": "a:b", "password": "p"}, "no colon"),
        ({"controller": URI, "request_timeout_seconds": "soon"}, "must be a number"),
        ({"controller": URI, "read_ahead": "2.5"}, "whole number"),
        ({"controller": URI, "tls_verify_hostname": "maybe"}, "true or false"),
    ],
)
def test_settings_that_cannot_work_are_refused(given, message):
    with pytest.raises(InvalidRequest, match=message):
        Endpoint.from_options(given)


@pytest.mark.parametrize("token", ["hidden\nhidden", "hidden hidden", "hiddén"])
def test_a_token_that_no_header_can_hold_is_refused_unseen(token):
    with pytest.raises(InvalidRequest, match="token holds a line break") as refused:
        Endpoint(URI, token=token)
    assert "hid" not in str(refused.value)


def test_options_round_trip_and_secrets_stay_out_of_the_repr():
    endpoint = Endpoint(
        "tls://a:1",
        auth_method="basic",
        username="u",
        password="hidden1",
        token="hidden2",
        tls_verify_hostname=False,
        read_ahead=4,
    )
    assert Endpoint.from_options(endpoint.to_options()) == endpoint
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint  # noqa: S301
    assert "hidden" not in repr(endpoint)
