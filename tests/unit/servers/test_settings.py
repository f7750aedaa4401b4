"""What servers get: settings, tokens, accounts."""

import base64
import hashlib
import hmac
import json

import pytest

from stream_servers import PulsarServer, tokens
from stream_servers.pravega import accounts_line
from stream_servers.pulsar import configure


def test_settings_replace_their_line_and_missing_ones_are_added():
    # Pulsar's own file has no newline at its end.
    template = "# a=comment\na=1\nb=\nab=3"
    assert configure(template, {"a": "9", "c": "4"}) == "# a=comment\na=9\nb=\nab=3\nc=4\n"


def test_ones_own_setting_wins_over_the_defaults():
    server = PulsarServer({"allowAutoTopicCreation": "true"}, ledger_entries=20)
    assert server._settings["allowAutoTopicCreation"] == "true"
    assert server._settings["managedLedgerMaxEntriesPerLedger"] == "20"
    assert server.network["bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize(("algorithm", "digest"), [("HS256", hashlib.sha256), ("HS512", hashlib.sha512)])
def test_a_token_is_a_signed_json_web_token(algorithm, digest):
    header, claims, signature = tokens.sign({"sub": "me"}, b"key", algorithm=algorithm, valid_seconds=60).split(".")
    expected = hmac.new(b"key", f"{header}.{claims}".encode(), digest).digest()
    assert base64.urlsafe_b64decode(signature + "==") == expected
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": algorithm}
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"] == "me"


def test_an_accounts_line_holds_a_salted_hash_and_the_permissions():
    line = accounts_line("ro", "pw", {"prn::/scope:s": "READ", "prn::/scope:s/stream:t": "READ_UPDATE"})
    user, hashed, acl = line.split(":", 2)
    assert (user, acl) == ("ro", "prn::/scope:s,READ;prn::/scope:s/stream:t,READ_UPDATE;\n")
    rounds, salt, digest = bytes.fromhex(hashed).decode().split(":")
    assert hashlib.pbkdf2_hmac("sha256", b"pw", bytes.fromhex(salt), int(rounds), 64).hex() == digest
    assert accounts_line("ro", "pw", {}) != accounts_line("ro", "pw", {})
