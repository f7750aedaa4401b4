"""How servers are trusted over TLS, and which of its failures no retry can pass."""

from __future__ import annotations

import ssl

from airflow_provider_streams.errors import (
    AccessError,
    AuthenticationFailed,
    CertificateNotTrusted,
    InvalidRequest,
    foreseen,
)


@foreseen()
def client_context(
    *, tls_ca_file: str = "", tls_cert_file: str = "", tls_key_file: str = "", tls_verify_hostname: bool = True
) -> ssl.SSLContext:
    """Trusts the authorities of `tls_ca_file` (empty: the system's), and shows our own certificate, if there is one.

    Certificates are always checked, host names unless switched off.

    Raises:
        InvalidRequest: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=tls_ca_file or None)
        if tls_cert_file:
            # an empty password: without one, OpenSSL would ask on the terminal
            context.load_cert_chain(tls_cert_file, tls_key_file, password="")
    except (OSError, ssl.SSLError, ValueError) as error:
        given = {"tls_ca_file": tls_ca_file, "tls_cert_file": tls_cert_file, "tls_key_file": tls_key_file}
        files = ", ".join(f"{name} {path}" for name, path in given.items() if path)
        raise InvalidRequest(f"{files} cannot be used: {error}") from error
    context.check_hostname = tls_verify_hostname
    return context


def tls_refusal(where: str, error: BaseException | None) -> AccessError | None:
    """The refusal if an error, or one that caused it, is about certificates, ours or theirs; None: it is not."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return CertificateNotTrusted(where, error.verify_message.rstrip("."))
        if isinstance(error, ssl.SSLError) and "CERTIFICATE_REQUIRED" in str(error).upper():
            return AuthenticationFailed(where, "it asks for a client certificate: tls_cert_file, tls_key_file")
        error = error.__cause__ or error.__context__
    return None
