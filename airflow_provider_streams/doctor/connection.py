"""Whether each service of a connection is reached, trusted, and accepts the credentials: four steps for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from airflow_provider_streams.doctor import network
from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.doctor.network import Address, Probe
from airflow_provider_streams.errors import (
    AuthenticationFailed,
    CertificateNotTrusted,
    MissingDependency,
    NotAuthorized,
    ProtocolError,
    StreamsError,
)
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.diagnosis import Diagnosis, Service

SIGN_IN = "sign-in"


def check_services(diagnosis: Diagnosis, source: Source | None) -> list[Finding]:
    """The findings of all services of a connection."""
    notes = Notes("connection")
    for service in diagnosis.services(source):
        _check(notes, service)
    return notes.findings


def accepts(findings: Sequence[Finding], service: str = "") -> bool:
    """Whether a service accepted the credentials; without a name, whether all did that were asked."""
    asked = [one for one in findings if one.check.endswith(SIGN_IN) and one.check.startswith(service)]
    return bool(asked) and all(one.level in ("ok", "warning") for one in asked)


def _check(notes: Notes, service: Service) -> None:
    name = service.name
    if service.after and not accepts(notes.findings, service.after):
        notes.skipped(name, f"the {service.after} knows its address, and could not be asked")
        return
    try:
        addresses = tuple(service.addresses())
    except NotAuthorized as error:
        notes.warning(name, f"its address is not known: {error}", "Name a source that this user may read")
        return
    except StreamsError as error:
        notes.error(name, f"its address is not known: {error}", f"Check the setting {service.option}")
        return
    if not addresses:
        _not_named(notes, service)
        return
    _steps(notes, service, addresses)


def _not_named(notes: Notes, service: Service) -> None:
    if service.needed_for:
        notes.error(
            service.name,
            f"the connection has no {service.option}, which {service.needed_for} needs",
            f"Add {service.option} to the connection's extra",
        )
    else:
        notes.skipped(service.name, f"the connection has no {service.option}")


def _steps(notes: Notes, service: Service, addresses: Sequence[Address]) -> None:
    option, name = service.option, service.name
    steps: list[tuple[str, Callable[[Address], Probe], str]] = [
        ("DNS", network.look_up, f"Correct the host in the setting {option}, or ask who runs the name server"),
        (
            "TCP",
            network.connect,
            f"Check the port in the setting {option}, that the server runs, and firewalls in between",
        ),
    ]
    if service.is_tls:
        advice = f"Set tls_ca_file to the authority of the certificate, and check scheme and host in {option}"
        steps.append(("TLS", lambda address: network.start_tls(address, service.ssl_context), advice))
    reached = addresses
    for step, probe, advice in steps:
        check = f"{name}: {step}"
        with notes.failing(check, advice):
            probes = [probe(address) for address in reached]
            judge(notes, check, probes, advice, datetime.now(UTC))
            reached = [one.address for one in probes if one.works]
        if notes.failed(check):
            notes.skipped(f"{name}: {SIGN_IN}", f"{step} failed")
            return
    if not service.is_tls:
        notes.skipped(f"{name}: TLS", f"the setting {option} asks for a connection without TLS")
    _sign_in(notes, service)


def judge(notes: Notes, check: str, probes: Sequence[Probe], advice: str, now: datetime) -> None:
    """The finding of one step at all of a service's addresses. One that works is enough to go on. Pure."""
    text = "; ".join(one.shown for one in probes)
    advice = next((one.next_step for one in probes if one.next_step), advice)
    if not any(one.works for one in probes):
        notes.error(check, text, advice)
    elif not all(one.works for one in probes):
        notes.warning(check, text, advice)
    elif any(network.expires_soon(one, now) for one in probes):
        notes.warning(check, text, "Renew the certificate before it expires")
    else:
        notes.ok(check, text)


def _sign_in(notes: Notes, service: Service) -> None:
    check = f"{service.name}: {SIGN_IN}"
    try:
        notes.ok(check, service.sign_in())
    except NotAuthorized as error:
        notes.warning(check, f"it knows us, but grants nothing that was asked for: {error}", "See the grants below")
    except StreamsError as error:
        notes.error(check, str(error), advice_of(error, service.option))


def advice_of(error: StreamsError, option: str) -> str:
    """What to do about an error of a first request."""
    match error:
        case AuthenticationFailed():
            return "Put valid credentials into the connection's password, or into the extras that hold them"
        case CertificateNotTrusted():
            return "Set tls_ca_file to the authority that signed the certificate"
        case MissingDependency():
            return "Install what the message names"
        case ProtocolError():
            return f"The port answers, but not as it should: {_check_port(option)}"
    return f"Check the server's log, and {_check_port(option)}"


def _check_port(option: str) -> str:
    return f"check port and scheme in the setting {option} (is it another service's port?)"
