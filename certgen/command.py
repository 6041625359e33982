"""The command line of certgen.

Exit codes: 0 done; 1 the API server refused or could not be reached; 2 an option is wrong; 3 the Secret or what it
holds cannot be used.
"""

import asyncio
import datetime
import functools
import sys
from collections.abc import Awaitable, Callable

import typer
from rich.console import Console

from altershield.kube.client import Client
from altershield.process import startup
from altershield.process.health import Health, serving
from altershield.process.parameters import with_options
from altershield.process.signals import stop_event
from certgen.contents import Contents, decode
from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler, Outcome
from certgen.rotation import renew, succeed
from certgen.settings import RotateSettings, RunSettings, Settings
from certgen.table import table

_PIPED_WIDTH = 200  # columns: who reads a pipe wants whole names

app = typer.Typer(
    help="The webhook's CA and serving certificate: made, renewed and published in the cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@with_options(Settings)
def ensure(settings: Settings) -> None:
    """Make Secret and webhook configurations right, once: create, renew or heal them. In the other modes: check."""
    _run_once(settings, CertificateReconciler.ensure)


@app.command()
@with_options(RotateSettings)
def rotate(settings: RotateSettings) -> None:
    """Renew the serving certificate now, or (--ca) the CA; returns when the new one signed. No admission fails."""
    _run_once(settings, functools.partial(succeed, distrust=settings.distrust) if settings.ca else renew)


@app.command()
@with_options(Settings)
def show(settings: Settings) -> None:
    """Print the certificates, who signed them, until when they are valid and where they are published. No keys."""
    _run_once(settings, _show)


@app.command()
@with_options(RunSettings)
def run(settings: RunSettings) -> None:
    """Keep everything right beside a gatekeeper, until SIGTERM, and hand the serving certificate over as files."""
    startup.run(functools.partial(_run, settings), settings.log_level)


def main() -> None:
    """Entry point."""
    startup.main(app)


def _run_once(settings: Settings, work: Callable[[CertificateReconciler], Awaitable[Outcome | None]]) -> None:
    async def connected() -> None:
        async with await Client.connect(settings.kubeconfig) as client:
            await work(CertificateReconciler(client, settings))

    startup.run(connected, settings.log_level)


async def _show(reconciler: CertificateReconciler) -> None:
    found = await reconciler.find()
    stored = decode(found.secret.data or {})[0] if found.secret else Contents()
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    console.print(table(stored, found.publications, datetime.datetime.now(datetime.UTC)))
    reconciler.check(found)


async def _run(settings: RunSettings) -> None:
    stop = stop_event()
    metrics = Metrics()
    async with await Client.connect(settings.kubeconfig) as client:
        reconciler = CertificateReconciler(
            client, settings, metrics, directory=settings.directory, owner=settings.owner
        )
        metrics.observe(client, reconciler.informers)
        async with serving(Health(metrics.registry, lambda: reconciler.missing), settings.metrics_port):
            keeping = asyncio.create_task(reconciler.run())
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if keeping.done():
                await keeping
            keeping.cancel()
