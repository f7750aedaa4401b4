"""Certificates for a server on loopback, and for one client: signed by an authority that lives as long as they do."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

_DAY = dt.timedelta(days=1)
_PASSWORD = b"1111_aaaa"  # parts of the Pravega standalone expect this one


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in one folder. The server's certificate names 127.0.0.1, and not `localhost`."""

    authority: Path
    server: Issued
    client: Issued
    keystore: Path
    """The server's, as Java reads it (PKCS #12)."""
    truststore: Path
    """The authority, as Java reads it."""
    store_password: Path
    """Of both stores, in a file."""

    @classmethod
    def make(cls, folder: Path, client: str) -> Certificates:
        """Valid for a day; the client's certificate bears the name `client`."""
        folder.mkdir(mode=0o700)
        authority = _Authority()
        server_key, server = authority.sign("loopback", loopback=True)
        client_key, one = authority.sign(client)
        encryption = BestAvailableEncryption(_PASSWORD)
        (folder / "password").write_bytes(_PASSWORD)
        (folder / "keystore.p12").write_bytes(
            pkcs12.serialize_key_and_certificates(b"server", server_key, server, [authority.certificate], encryption)
        )
        trusted = pkcs12.PKCS12Certificate(authority.certificate, b"authority")
        (folder / "truststore.p12").write_bytes(pkcs12.serialize_java_truststore([trusted], encryption))
        (folder / "authority.pem").write_bytes(authority.certificate.public_bytes(Encoding.PEM))
        return cls(
            folder / "authority.pem",
            _written(folder, "server", server_key, server),
            _written(folder, "client", client_key, one),
            folder / "keystore.p12",
            folder / "truststore.p12",
            folder / "password",
        )


class _Authority:
    def __init__(self) -> None:
        self._key = _new_key()
        self._name = _named("streams test authority")
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = (
            _builder(self._key, self._name, self._name)
            .add_extension(constraint, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def sign(self, name: str, *, loopback: bool = False) -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
        key = _new_key()
        builder = _builder(key, _named(name), self._name)
        if loopback:
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return key, builder.sign(self._key, hashes.SHA256())


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(key: rsa.RSAPrivateKey, subject: x509.Name, issuer: x509.Name) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )


def _written(folder: Path, name: str, key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> Issued:
    issued = Issued(folder / f"{name}.pem", folder / f"{name}.key")
    issued.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    issued.key.touch(mode=0o600)
    issued.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return issued
