"""The command line of certgen.

Exit codes: 0 done; 1 the API server refused or could not be reached; 2 an option is wrong; 3 the Secret or what it
holds cannot be used.
"""

import asyncio
import datetime
import functools
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from altershield import logs, options
from altershield.errors import AlterShieldError
from altershield.kube.client import Client
from altershield.serving import serving
from certgen.contents import Contents, decode
from certgen.keeper import Keeper, Outcome
from certgen.lifetimes import Lifetimes
from certgen.metrics import Metrics
from certgen.rotation import renew, succeed
from certgen.settings import Mode, Settings, service_hosts
from certgen.table import table

_DEFAULT = Lifetimes()
_PIPED_WIDTH = 200  # columns: who reads a pipe wants whole names

app = typer.Typer(
    help="The webhook's CA and serving certificate: made, renewed and published in the cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

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
CA_LIFETIME = int(_DEFAULT.authority.total_seconds())
LEAF_LIFETIME = int(_DEFAULT.leaf.total_seconds())
SETTLE = int(_DEFAULT.settle.total_seconds())
SECRET = "altershield-tls"  # noqa: S105  (its name)
CONFIGURATION = SERVICE = "altershield"


@app.command()
def ensure(
    kubeconfig: options.Kubeconfig = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    secret: SecretName = SECRET,
    webhook_configuration: Configuration = CONFIGURATION,
    service: Service = SERVICE,
    san: Sans = [],  # noqa: B006  (typer's way; never changed)
    mode: ModeOption = Mode.CERTGEN,
    ca_lifetime: AuthorityLifetime = CA_LIFETIME,
    leaf_lifetime: LeafLifetime = LEAF_LIFETIME,
    settle: Settle = SETTLE,
    log_level: options.LogLevel = options.LOG_LEVEL,
) -> None:
    """Make Secret and webhook configurations right, once: create, renew or heal them. In the other modes: check."""
    settings = _settings(
        system_namespace, secret, webhook_configuration, service, san, mode, ca_lifetime, leaf_lifetime, settle
    )
    logs.configure(log_level)
    asyncio.run(_with_keeper(kubeconfig, settings, Keeper.ensure))


@app.command()
def rotate(
    kubeconfig: options.Kubeconfig = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    secret: SecretName = SECRET,
    webhook_configuration: Configuration = CONFIGURATION,
    service: Service = SERVICE,
    san: Sans = [],  # noqa: B006
    mode: ModeOption = Mode.CERTGEN,
    ca_lifetime: AuthorityLifetime = CA_LIFETIME,
    leaf_lifetime: LeafLifetime = LEAF_LIFETIME,
    settle: Settle = SETTLE,
    ca: Annotated[bool, typer.Option("--ca", help="A new CA too: published beside the old one, then signing.")] = False,
    distrust: Annotated[
        bool, typer.Option("--distrust", help="With --ca: the old CA's key leaked, do not trust it until it expires.")
    ] = False,
    log_level: options.LogLevel = options.LOG_LEVEL,
) -> None:
    """Renew the serving certificate now, or (--ca) the CA; returns when the new one signed. No admission fails."""
    if distrust and not ca:
        raise typer.BadParameter("--distrust goes with --ca only")
    settings = _settings(
        system_namespace, secret, webhook_configuration, service, san, mode, ca_lifetime, leaf_lifetime, settle
    )
    logs.configure(log_level)
    work = functools.partial(succeed, distrust=distrust) if ca else renew
    asyncio.run(_with_keeper(kubeconfig, settings, work))


@app.command()
def show(
    kubeconfig: options.Kubeconfig = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    secret: SecretName = SECRET,
    webhook_configuration: Configuration = CONFIGURATION,
    service: Service = SERVICE,
    san: Sans = [],  # noqa: B006
    mode: ModeOption = Mode.CERTGEN,
) -> None:
    """Print the certificates, who signed them, until when they are valid and where they are published. No keys."""
    settings = _settings(
        system_namespace, secret, webhook_configuration, service, san, mode, CA_LIFETIME, LEAF_LIFETIME, SETTLE
    )
    asyncio.run(_with_keeper(kubeconfig, settings, _show))


@app.command()
def run(
    directory: Annotated[
        Path,
        typer.Option(
            "--directory", envvar="ALTERSHIELD_DIRECTORY", help="Where the gatekeeper finds tls.crt and tls.key."
        ),
    ],
    kubeconfig: options.Kubeconfig = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    secret: SecretName = SECRET,
    webhook_configuration: Configuration = CONFIGURATION,
    service: Service = SERVICE,
    san: Sans = [],  # noqa: B006
    mode: ModeOption = Mode.CERTGEN,
    ca_lifetime: AuthorityLifetime = CA_LIFETIME,
    leaf_lifetime: LeafLifetime = LEAF_LIFETIME,
    settle: Settle = SETTLE,
    metrics_port: options.MetricsPort = 8082,
    owner: Annotated[
        str,
        typer.Option(
            "--owner",
            envvar="ALTERSHIELD_OWNER",
            help="The ClusterRole with which webhook configurations and Secret are to be garbage-collected.",
        ),
    ] = "",
    log_level: options.LogLevel = options.LOG_LEVEL,
) -> None:
    """Keep everything right beside a gatekeeper, until SIGTERM, and hand the serving certificate over as files."""
    settings = _settings(
        system_namespace,
        secret,
        webhook_configuration,
        service,
        san,
        mode,
        ca_lifetime,
        leaf_lifetime,
        settle,
        directory,
        owner,
    )
    logs.configure(log_level)
    asyncio.run(_run(kubeconfig, settings, metrics_port))


def main() -> None:
    """Entry point. An error of ours is one sentence on stderr and its exit code, never a traceback."""
    try:
        app()
    except AlterShieldError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _settings(
    namespace: str,
    secret: str,
    configuration: str,
    service: str,
    sans: list[str],
    mode: Mode,
    ca_lifetime: int,
    leaf_lifetime: int,
    settle: int,
    directory: Path | None = None,
    owner: str = "",
) -> Settings:
    seconds = [datetime.timedelta(seconds=value) for value in (ca_lifetime, leaf_lifetime, settle)]
    hosts = tuple(sans) or service_hosts(service, namespace)
    return Settings(namespace, secret, configuration, hosts, Lifetimes(*seconds), mode, directory, owner)


async def _with_keeper(
    kubeconfig: str | None, settings: Settings, work: Callable[[Keeper], Awaitable[Outcome | None]]
) -> None:
    async with await Client.connect(kubeconfig) as client:
        await work(Keeper(client, settings))


async def _show(keeper: Keeper) -> None:
    found = await keeper.find()
    stored = decode(found.secret.data or {})[0] if found.secret else Contents()
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    console.print(table(stored, found.publications, datetime.datetime.now(datetime.UTC)))
    keeper.check(found)


async def _run(kubeconfig: str | None, settings: Settings, metrics_port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics()
    async with await Client.connect(kubeconfig) as client:
        keeper = Keeper(client, settings, metrics)
        metrics.observe(client, keeper.informers)
        async with serving(metrics_port, metrics.registry, lambda: keeper.missing):
            keeping = asyncio.create_task(keeper.run())
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if keeping.done():
                await keeping
            keeping.cancel()
