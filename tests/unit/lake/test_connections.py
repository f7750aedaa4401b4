"""What of a table's connection must not be shown."""

import pytest

from airflow_provider_streams.lake.connections import secrets_of

SECRET = "correct-horse-battery"


@pytest.mark.parametrize(
    "name",
    ["s3.secret-access-key", "s3.session-token", "credential", "token", "adls.account-key", "adls.sas-token",
     "header.Authorization", "header.X-Api-Key", "header.Cookie", "gcs.oauth2.token"],
)  # fmt: skip
def test_values_are_secret_by_their_names(name):
    assert secrets_of({name: SECRET, "s3.region": "eu-1"}) == [SECRET]


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql+psycopg2://u:{SECRET}@host/db",
        f"http://u:{SECRET}@host:1/path",
        f"postgresql:/u:{SECRET}@host/db",
        f"postgresql://host/db?user=u&password={SECRET}&sslmode=require",
        f"mysql+pymysql://host/db?passwd={SECRET}",
    ],
)
def test_passwords_in_addresses_are_secret(uri):
    assert secrets_of({"uri": uri}) == [SECRET]


def test_a_password_in_an_address_is_secret_as_it_is_written_and_as_it_is():
    assert secrets_of({"uri": "postgresql://u:p%40ss@host/db"}) == ["p%40ss", "p@ss"]


def test_what_is_no_secret_is_shown():
    assert secrets_of({"uri": "http://127.0.0.1:8181/catalog", "s3.endpoint": "https://s3.example", "token": ""}) == []
