"""The command line of certgen.

Exit codes: 0 success; 1 the API server denied the request or is unreachable; 2 an option is wrong; 3 the Secret or its
contents cannot be used.
"""

import asyncio
import datetime
import functools
import sys
from collections.abc import Awaitable, Callable

import typer
from rich.console import Console

from altershield.process import startup
from altershield.process.health import Health, serving
from altershield.process.parameters import with_options
from altershield.process.signals import stop_event
from certgen.contents import Contents, decode
from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler, Outcome
from certgen.rotation import renew_leaf, replace_authority
from certgen.settings import RotateSettings, RunSettings, Settings
from certgen.table import table
from kube_base.access.client import Client

_PIPED_WIDTH = 200  # columns if the output is not a terminal, so that names are not cut

app = typer.Typer(
    help="Create, renew and publish the webhook's CA and serving certificate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@with_options(Settings)
def ensure(settings: Settings) -> None:
    """Create, renew or repair the Secret and the webhook configurations, once. In the other modes: check them."""
    _run_once(settings, CertificateReconciler.ensure)


@app.command()
@with_options(RotateSettings)
def rotate(settings: RotateSettings) -> None:
    """Renew the serving certificate now. With --ca: replace the CA and wait until the new CA has signed. No admission
    fails."""
    _run_once(settings, functools.partial(replace_authority, distrust=settings.distrust) if settings.ca else renew_leaf)


@app.command()
@with_options(Settings)
def show(settings: Settings) -> None:
    """Print the certificates, their issuers, when they expire and where they are published. Keys are not printed."""
    _run_once(settings, _show)


@app.command()
@with_options(RunSettings)
def run(settings: RunSettings) -> None:
    """Run beside a gatekeeper until SIGTERM: reconcile the certificates, and write the serving certificate to files."""
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
    found = await reconciler.read_cluster()
    stored = decode(found.secret.data or {})[0] if found.secret else Contents()
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    console.print(table(stored, found.configurations, datetime.datetime.now(datetime.UTC)))
    reconciler.check(found)


async def _run(settings: RunSettings) -> None:
    stop = stop_event()
    metrics = Metrics()
    async with await Client.connect(settings.kubeconfig) as client:
        reconciler = CertificateReconciler(
            client, settings, metrics, directory=settings.directory, owner=settings.owner
        )
        metrics.observe(client, reconciler.changes.informers)
        async with serving(Health(metrics.registry, lambda: reconciler.not_ready), settings.metrics_port):
            running = asyncio.create_task(reconciler.run())
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if running.done():
                await running
            running.cancel()
