"""The options of certgen, and values derived from them."""

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
    """Who provides the serving certificate. certgen writes the Secret only in the first mode."""

    CERTGEN = "certgen"
    """certgen creates, renews, repairs and publishes it."""
    CERT_MANAGER = "cert-manager"
    """cert-manager provides it, and its CA injector publishes the CA."""
    SECRET = "secret"  # noqa: S105  (the name of the mode)
    """An administrator provides it. certgen publishes `ca.crt` of the Secret, if there is one."""


SecretName = Annotated[
    str, typer.Option("--secret", envvar="ALTERSHIELD_SECRET", help="The Secret with the certificates and keys.")
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
        "--san",
        envvar="ALTERSHIELD_SAN",
        help="Host names and IP addresses of the certificate, instead of the Service's names.",
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option("--mode", envvar="ALTERSHIELD_MODE", help="Who provides the Secret. certgen writes only its own."),
]
AuthorityLifetime = Annotated[
    int,
    typer.Option("--ca-lifetime", envvar="ALTERSHIELD_CA_LIFETIME", min=3, help="Lifetime of a CA in seconds."),
]
LeafLifetime = Annotated[
    int,
    typer.Option(
        "--leaf-lifetime",
        envvar="ALTERSHIELD_LEAF_LIFETIME",
        min=3,
        help="Lifetime of a serving certificate in seconds; it is renewed after two thirds of it.",
    ),
]
Settle = Annotated[
    int,
    typer.Option(
        "--settle",
        envvar="ALTERSHIELD_SETTLE",
        min=1,
        help="Seconds for which a new CA is published before it signs, so that all API servers know it.",
    ),
]
Ca = Annotated[
    bool, typer.Option("--ca", help="Replace the CA, too: publish the new one beside the old one, then sign with it.")
]
Distrust = Annotated[
    bool,
    typer.Option(
        "--distrust", help="With --ca: remove the old CA at once instead of when it expires, because its key leaked."
    ),
]
Directory = Annotated[
    Path,
    typer.Option(
        "--directory",
        envvar="ALTERSHIELD_DIRECTORY",
        help="The directory from which the gatekeeper reads tls.crt and tls.key.",
    ),
]
Owner = Annotated[
    str,
    typer.Option(
        "--owner",
        envvar="ALTERSHIELD_OWNER",
        help="The ClusterRole that becomes the owner of the webhook configurations and the Secret.",
    ),
]

_DEFAULT = Lifetimes()


@dataclass(frozen=True, kw_only=True)
class Settings(ProcessOptions):
    """The options of all commands. Lifetimes are in seconds."""

    secret: SecretName = "altershield-tls"  # noqa: S105  (the name of the Secret)
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
        """The host names and addresses of the serving certificate, at least one."""
        return tuple(self.san) or service_hosts(self.service, self.system_namespace)

    @cached_property
    def lifetimes(self) -> Lifetimes:
        """The lifetimes. UsageError if they do not fit together."""
        seconds = (self.ca_lifetime, self.leaf_lifetime, self.settle)
        return Lifetimes(*(datetime.timedelta(seconds=value) for value in seconds))


@dataclass(frozen=True, kw_only=True)
class RotateSettings(Settings):
    ca: Ca = False
    distrust: Distrust = False

    def __post_init__(self) -> None:
        if self.distrust and not self.ca:
            raise typer.BadParameter("--distrust needs --ca")


@dataclass(frozen=True, kw_only=True)
class RunSettings(Settings):
    directory: Directory
    """The directory to which the serving certificate is written for the gatekeeper."""
    metrics_port: options.MetricsPort = 8082
    owner: Owner = ""
    """The ClusterRole that owns the webhook configurations; see `garbage_collection`."""


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """The DNS names of a Service. API servers use the first."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", f"{service}.{namespace}")
