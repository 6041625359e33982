"""The settings of certgen: its options, and what follows from them."""

import datetime
import enum
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from altershield.process import options
from altershield.process.startup import ProcessOptions
from certgen.lifetimes import Lifetimes


class Mode(enum.StrEnum):
    """Who provides the serving certificate. Only in the first mode is the Secret ever written."""

    CERTGEN = "certgen"
    """We do: created, renewed, healed and published."""
    CERT_MANAGER = "cert-manager"
    """cert-manager does, and its CA injector publishes."""
    SECRET = "secret"  # noqa: S105  (the mode's name)
    """The admin does; the Secret's `ca.crt`, if there is one, is published."""


SecretName = Annotated[
    str, typer.Option("--secret", envvar="ALTERSHIELD_SECRET", help="The Secret that holds certificates and keys.")
]
Configuration = Annotated[
    str,
    typer.Option(
        "--webhook-configuration",
        envvar="ALTERSHIELD_WEBHOOK_CONFIGURATION",
        help="The name of the mutating and of the validating webhook configuration.",
    ),
]
Service = Annotated[
    str, typer.Option("--service", envvar="ALTERSHIELD_SERVICE", help="The Service in front of the gatekeepers.")
]
Sans = Annotated[
    list[str],
    typer.Option(
        "--san", envvar="ALTERSHIELD_SAN", help="Names and IP addresses to serve on instead of the Service's."
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option("--mode", envvar="ALTERSHIELD_MODE", help="Who provides the Secret; only certgen's own is written."),
]
AuthorityLifetime = Annotated[
    int,
    typer.Option("--ca-lifetime", envvar="ALTERSHIELD_CA_LIFETIME", min=3, help="Seconds that a CA is valid."),
]
LeafLifetime = Annotated[
    int,
    typer.Option(
        "--leaf-lifetime",
        envvar="ALTERSHIELD_LEAF_LIFETIME",
        min=3,
        help="Seconds that a serving certificate is valid; it is renewed after two thirds of them.",
    ),
]
Settle = Annotated[
    int,
    typer.Option(
        "--settle",
        envvar="ALTERSHIELD_SETTLE",
        min=1,
        help="Seconds that a new CA is published before it signs, so that every API server knows it.",
    ),
]
Ca = Annotated[bool, typer.Option("--ca", help="A new CA too: published beside the old one, then signing.")]
Distrust = Annotated[
    bool, typer.Option("--distrust", help="With --ca: the old CA's key leaked, do not trust it until it expires.")
]
Directory = Annotated[
    Path,
    typer.Option("--directory", envvar="ALTERSHIELD_DIRECTORY", help="Where the gatekeeper finds tls.crt and tls.key."),
]
Owner = Annotated[
    str,
    typer.Option(
        "--owner",
        envvar="ALTERSHIELD_OWNER",
        help="The ClusterRole with which webhook configurations and Secret are to be garbage-collected.",
    ),
]

_DEFAULT = Lifetimes()


@dataclass(frozen=True, kw_only=True)
class Settings(ProcessOptions):
    """The options of all commands. Lifetimes are in seconds."""

    secret: SecretName = "altershield-tls"  # noqa: S105  (its name)
    webhook_configuration: Configuration = "altershield"
    """The name of both webhook configurations."""
    service: Service = "altershield"
    san: Sans = field(default_factory=list)
    mode: ModeOption = Mode.CERTGEN
    ca_lifetime: AuthorityLifetime = int(_DEFAULT.authority.total_seconds())
    leaf_lifetime: LeafLifetime = int(_DEFAULT.leaf.total_seconds())
    settle: Settle = int(_DEFAULT.settle.total_seconds())

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that the serving certificate is for, at least one."""
        return tuple(self.san) or service_hosts(self.service, self.system_namespace)

    @cached_property
    def lifetimes(self) -> Lifetimes:
        """UsageError if the lifetimes do not fit together."""
        seconds = (self.ca_lifetime, self.leaf_lifetime, self.settle)
        return Lifetimes(*(datetime.timedelta(seconds=value) for value in seconds))


@dataclass(frozen=True, kw_only=True)
class RotateSettings(Settings):
    ca: Ca = False
    distrust: Distrust = False

    def __post_init__(self) -> None:
        if self.distrust and not self.ca:
            raise typer.BadParameter("--distrust goes with --ca only")


@dataclass(frozen=True, kw_only=True)
class RunSettings(Settings):
    directory: Directory
    """Where the gatekeeper's files go."""
    metrics_port: options.MetricsPort = 8082
    owner: Owner = ""
    """The ClusterRole with which the configurations end; see `ownership`."""


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """The names under which a Service is known; API servers use the first."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", f"{service}.{namespace}")
