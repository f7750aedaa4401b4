"""Failures of TLS that asking again does not mend."""

from __future__ import annotations

import ssl

from airflow_provider_streams.errors import AccessError, AuthenticationFailed, CertificateNotTrusted


def tls_refusal(where: str, error: BaseException | None) -> AccessError | None:
    """What an error, or one that caused it, says of certificates, ours or theirs; None: nothing."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return CertificateNotTrusted(where, error.verify_message.rstrip("."))
        if isinstance(error, ssl.SSLError) and "CERTIFICATE_REQUIRED" in str(error).upper():
            return AuthenticationFailed(where, "it asks for a client certificate: tls_cert_file, tls_key_file")
        error = error.__cause__ or error.__context__
    return None
