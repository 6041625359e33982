"""The command line and the output of `altershield demo`."""

import asyncio
import signal
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console
from rich.text import Text

from altershield.process import options
from altershield.process.parameters import with_options
from altershield.process.signals import cancel_on
from command.backend import open_backend
from command.confirm import confirm
from command.demo.steps import STEPS, Step
from command.demo.story import StepFailedError, Story
from command.installation import LOOPBACK, running_installation
from kube_base.access.client import Client
from kube_base.errors import ReportedError
from reconciler.thresholds import Thresholds

_FAST_START_TIMEOUT = 8.0
_FAST_OBSERVE_SECONDS = 1.0
_LOG_LINES = 30
_INDENT = 6  # columns: the text below the number of a step


Fast = Annotated[
    bool,
    typer.Option(
        "--fast",
        envvar="ALTERSHIELD_FAST",
        help=f"Observe pods for {_FAST_OBSERVE_SECONDS:.0f} s and roll back after {_FAST_START_TIMEOUT:.0f} s, "
        "instead of --observe-seconds and --start-timeout. The demo then takes less than a minute.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options(Thresholds):
    fast: Fast = False
    kubeconfig: options.Kubeconfig = None
    yes: options.Yes = False


@with_options(Options)
def demo(chosen: Options) -> None:
    """Play a release story in thirteen steps and check the outcome of each.

    Without --kubeconfig, the demo starts its own Kubernetes API on loopback (the real one if KUBEBUILDER_ASSETS names
    a folder with etcd and kube-apiserver). The exit code is 0 only if every step had the expected outcome. With
    --kubeconfig, the demo installs webhooks with failurePolicy Fail in that cluster; if the API server is not on
    loopback, it asks first. Without a terminal, it needs --yes.
    """
    if chosen.kubeconfig is not None:
        confirm(chosen.kubeconfig, None, LOOPBACK, yes=chosen.yes)
    if chosen.fast:
        chosen = replace(chosen, start_timeout=_FAST_START_TIMEOUT, observe_seconds=_FAST_OBSERVE_SECONDS)
    uvloop.run(_demo(chosen.kubeconfig, chosen))


async def _demo(kubeconfig: str | None, thresholds: Thresholds) -> None:
    console = Console(highlight=False)
    began = time.monotonic()
    cancel_on(signal.SIGTERM, signal.SIGHUP)
    with tempfile.TemporaryDirectory(prefix="altershield-") as name:
        directory = Path(name)
        log = directory / "altershield.log"
        try:
            async with open_backend(kubeconfig, directory) as backend:
                console.print(f"A release story on {backend.description}", soft_wrap=True)
                async with running_installation(
                    str(backend.kubeconfig), directory, thresholds, log=log, stays=kubeconfig is not None
                ) as running:
                    failed = asyncio.create_task(running.failed())
                    played = asyncio.create_task(_play(console, str(backend.kubeconfig), thresholds.start_timeout))
                    try:
                        done, _ = await asyncio.wait({failed, played}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        failed.cancel()
                        played.cancel()
                    done.pop().result()
        except ReportedError:
            _show_log(console, log)
            raise
    seconds = time.monotonic() - began
    console.print(f"\n[bold green]All {len(STEPS)} steps had the expected outcome[/] ({seconds:.0f} s).")


async def _play(console: Console, kubeconfig: str, start_timeout: float) -> None:
    async with await Client.connect(kubeconfig) as client:
        story = Story(client, start_timeout)
        async with story.watching():
            for number, step in enumerate(STEPS, 1):
                await _step(console, f"{number:2}/{len(STEPS)}", step, story)


async def _step(console: Console, position: str, step: Step, story: Story) -> None:
    """Print what happens and the commands, make the change, and print the outcome."""
    began = time.monotonic()
    console.print(f"\n{position} [bold]{step.title}[/]: {step.explanation}", soft_wrap=True)
    for command in step.commands(story):
        first, *rest = command.splitlines()
        for line in (f"$ {first}", *rest):  # never wrapped by us, so that it can be copied
            console.print(f"{' ' * _INDENT}{line}", style="cyan", markup=False, soft_wrap=True)
    with console.status("Waiting for the outcome"):
        try:
            outcome = await step.run(story)
        except ReportedError as error:
            _print_outcome(console, "[bold red]✗[/]", str(error))
            raise StepFailedError(f"step {position.strip()} ({step.title}) failed: {error}") from error
    _print_outcome(console, f"[bold green]✓[/] [dim]({time.monotonic() - began:.1f} s)[/]", outcome)


def _print_outcome(console: Console, sign: str, outcome: str) -> None:
    """Print one line without line breaks, with the outcome at its end: a denial ends with a command to paste."""
    console.print(Text.assemble(" " * _INDENT, Text.from_markup(sign), " ", outcome), soft_wrap=True)


def _show_log(console: Console, log: Path) -> None:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
    if lines:
        console.print("[dim]The last log lines of the gatekeeper and the reconciler:[/]")
        console.print("\n".join(lines), markup=False, style="dim", soft_wrap=True)
