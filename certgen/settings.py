"""What certgen is told: where things are, who provides them, how long they live."""

import enum
from dataclasses import dataclass
from pathlib import Path

from certgen.lifetimes import Lifetimes


class Mode(enum.StrEnum):
    """Who provides the serving certificate. Only in the first mode is the Secret ever written."""

    CERTGEN = "certgen"
    """We do: created, renewed, healed and published."""
    CERT_MANAGER = "cert-manager"
    """cert-manager does, and its CA injector publishes."""
    SECRET = "secret"  # noqa: S105  (the mode's name)
    """The admin does; the Secret's `ca.crt`, if there is one, is published."""


@dataclass(frozen=True)
class Settings:
    namespace: str
    secret: str
    configuration: str
    """The name of both webhook configurations."""
    hosts: tuple[str, ...]
    """What the serving certificate is for, at least one."""
    lifetimes: Lifetimes
    mode: Mode = Mode.CERTGEN
    directory: Path | None = None
    """Where the gatekeeper's files go."""
    owner: str = ""
    """The ClusterRole with which the configurations end; see `ownership`."""


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """The names under which a Service is known; API servers use the first."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", f"{service}.{namespace}")
