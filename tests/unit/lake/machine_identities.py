"""What tells a process of Amazon's clients who its machine is, with a service on loopback that gives keys."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

KEYS = {"s3.access-key-id": "own-key", "s3.secret-access-key": "own-secret", "s3.region": "us-east-1"}
_ROLE = "/latest/meta-data/iam/security-credentials"
_GIVEN = json.dumps(
    {
        "Code": "Success",
        "AccessKeyId": "machine-key",
        "SecretAccessKey": "machine-secret",
        "Token": "machine-token",
        "Expiration": "2099-01-01T00:00:00Z",
    }
)
_ANSWERS = {
    "/latest/api/token": "session",
    "/latest/meta-data/placement/region": "eu-north-1",
    "/latest/meta-data/placement/availability-zone": "eu-north-1a",
    _ROLE: "role",
    f"{_ROLE}/": "role",
    f"{_ROLE}/role": _GIVEN,
    "/keys": _GIVEN,
}


class Machine(BaseHTTPRequestHandler):
    """Gives keys as the metadata of a virtual machine or a container do. As a store, it refuses all."""

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(f"{self.path} {self.headers}")
        answer = _ANSWERS.get(self.path, "").encode()
        self.send_response(200 if answer else 403)
        self.send_header("Content-Type", "application/json" if answer.startswith(b"{") else "text/plain")
        self.send_header("x-aws-ec2-metadata-token-ttl-seconds", "600")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_HEAD(self):
        self.do_GET()

    def do_PUT(self):
        self.do_GET()

    def do_POST(self):
        self.do_GET()

    def log_message(self, *_):
        """Nothing."""


IDENTITIES = ("web identity", "container", "virtual machine", "file", "profile", "environment", "no such profile")


def be(identity: str, patch: pytest.MonkeyPatch, folder: Path, address: str) -> None:
    """Let this process be on a machine that has one identity, and no other.

    Args:
        identity: one of `IDENTITIES`.
        patch: of the test.
        folder: for files.
        address: of a `Machine`.
    """
    (folder / "token").write_text("web-token")
    (folder / "config").write_text(
        f"[default]\naws_access_key_id = machine-key\naws_secret_access_key = x\nendpoint_url = {address}\n"
        "[profile prod]\naws_access_key_id = machine-key\naws_secret_access_key = x\n"
    )
    config = {"AWS_CONFIG_FILE": str(folder / "config")}
    said = {
        "web identity": {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / "token"),
            "AWS_ROLE_ARN": "arn:aws:iam::1:role/machine",
            "AWS_ENDPOINT_URL_STS": address,
        },
        "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/keys"},
        "virtual machine": {"AWS_EC2_METADATA_DISABLED": "false"},
        "file": config,
        "profile": {**config, "AWS_PROFILE": "prod"},
        "environment": {"AWS_ACCESS_KEY_ID": "machine-key", "AWS_SECRET_ACCESS_KEY": "x"},
        "no such profile": {**config, "AWS_PROFILE": "none"},
    }
    # never the metadata of the machine that runs this test
    away = {"HOME": str(folder), "AWS_EC2_METADATA_DISABLED": "true"}
    away |= dict.fromkeys(("AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_METADATA_ENDPOINT"), address)
    for name, value in {**away, **said[identity]}.items():
        patch.setenv(name, value)
