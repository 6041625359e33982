"""`altershield demo`: the release story, played on a Kubernetes of its own or on a cluster."""

import asyncio
import signal
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from altershield import options
from altershield.commands.backend import open_backend
from altershield.commands.confirm import confirm
from altershield.commands.gate import LOOPBACK, Thresholds, running_gate
from altershield.commands.story import STEPS, Step, StepFailedError, Story
from altershield.errors import AlterShieldError
from altershield.kube.client import Client

_FAST_START_TIMEOUT = 8.0
_FAST_OBSERVE_SECONDS = 1.0
_LOG_LINES = 30


def demo(
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            envvar="ALTERSHIELD_FAST",
            help=f"Observe pods for {_FAST_OBSERVE_SECONDS:.0f} s and self-heal after {_FAST_START_TIMEOUT:.0f} s, "
            "whatever --observe-seconds and --start-timeout say: under a minute.",
        ),
    ] = False,
    kubeconfig: options.Kubeconfig = None,
    start_timeout: options.StartTimeout = options.START_TIMEOUT,
    observe_seconds: options.ObserveSeconds = options.OBSERVE_SECONDS,
    batch_wait: options.BatchWait = options.BATCH_WAIT,
    pre_timeout: options.PreTimeout = options.PRE_TIMEOUT,
    post_timeout: options.PostTimeout = options.POST_TIMEOUT,
    lease_duration: options.LeaseDuration = options.LEASE_DURATION,
    yes: options.Yes = False,
) -> None:
    """Play a whole release story and check that every step comes true.

    Without --kubeconfig it brings its own Kubernetes API on loopback (the real one where KUBEBUILDER_ASSETS names a
    folder with etcd and kube-apiserver). Ends 0 only if every step came true. With --kubeconfig it asks first if the
    API server is not on loopback, because it installs webhooks with failurePolicy Fail; without a terminal it takes
    --yes.
    """
    if kubeconfig is not None:
        confirm(kubeconfig, None, LOOPBACK, yes=yes)
    if fast:
        start_timeout, observe_seconds = _FAST_START_TIMEOUT, _FAST_OBSERVE_SECONDS
    thresholds = Thresholds(start_timeout, observe_seconds, batch_wait, pre_timeout, post_timeout, lease_duration)
    uvloop.run(_demo(kubeconfig, thresholds))


async def _demo(kubeconfig: str | None, thresholds: Thresholds) -> None:
    console = Console(highlight=False, soft_wrap=True)
    began = time.monotonic()
    if (this := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    with tempfile.TemporaryDirectory(prefix="altershield-") as name:
        directory = Path(name)
        log = directory / "gate.log"
        try:
            async with open_backend(kubeconfig, directory) as backend:
                console.print(f"On {backend.description}")
                async with running_gate(str(backend.kubeconfig), directory, thresholds, log=log) as gate:
                    failed = asyncio.create_task(gate.failed())
                    played = asyncio.create_task(_play(console, str(backend.kubeconfig), thresholds.start_timeout))
                    try:
                        done, _ = await asyncio.wait({failed, played}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        failed.cancel()
                        played.cancel()
                    done.pop().result()
        except AlterShieldError:
            _show_log(console, log)
            raise
    console.print(f"[bold green]Every step came true[/] in {time.monotonic() - began:.0f} s.")


async def _play(console: Console, kubeconfig: str, start_timeout: float) -> None:
    async with await Client.connect(kubeconfig) as client:
        story = Story(client, start_timeout)
        async with story.watching():
            for number, step in enumerate(STEPS, 1):
                await _step(console, f"{number:2}/{len(STEPS)}", step, story)


async def _step(console: Console, position: str, step: Step, story: Story) -> None:
    began = time.monotonic()
    with console.status(f"{position} {step.title}: {step.command}"):
        try:
            seen = await step.run(story)
        except AlterShieldError as error:
            console.print(f"[bold red]✗[/] {position} [bold]{step.title}[/] [dim]{step.command}[/]")
            console.print(f"      expected: {step.expected}\n      seen:     {error}", markup=False)
            raise StepFailedError(f"step {position.strip()} ({step.title}) did not come true: {error}") from error
    seconds = time.monotonic() - began
    console.print(f"[bold green]✓[/] {position} [bold]{step.title}[/] [dim]{step.command}  {seconds:.1f} s[/]")
    console.print(f"      expected: {step.expected}\n      seen:     {seen}", markup=False)


def _show_log(console: Console, log: Path) -> None:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
    if lines:
        console.print("[dim]The gate's last log lines:[/]")
        console.print("\n".join(lines), markup=False, style="dim")
