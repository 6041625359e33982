"""`altershield notify test`: sends a test notification to the receivers of a file."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from altershield.api.schema import doc
from altershield.views.document import Document, Part
from command.output import Format, Printed, write
from kube_base.errors import ReportedError, UsageError
from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.sending import Sender, Sent
from reconciler.outbound.outbound_client import Outbound
from reconciler.receivers.file import Receiver, Receivers, allowed, read
from reconciler.receivers.vocabulary import Event, Type

app = typer.Typer(help="Test the receivers of notifications.", no_args_is_help=True)


class NotSentError(ReportedError):
    """A receiver did not take the test notification."""


class NotificationTest(Part, frozen=True):
    """A test notification to a receiver."""

    receiver: Annotated[str, doc("The name of the receiver.")]
    problem: Annotated[str, doc("Why it did not take the notification; empty: it did.")]


class NotificationTestList(Document, frozen=True):
    """Test notifications to receivers."""

    items: Annotated[tuple[NotificationTest, ...], doc("One entry for each receiver.")]


@app.callback()
def _common() -> None:
    """Test the receivers of notifications."""


@app.command("test")
def send_test(
    file: Annotated[
        Path,
        typer.Option(
            "--file", "-f", envvar="ALTERSHIELD_NOTIFICATIONS_FILE", help="The file with the receivers (YAML)."
        ),
    ],
    receiver: Annotated[
        str,
        typer.Option("--receiver", help="The name of one receiver. Default: all receivers.", show_default=False),
    ] = "",
    output: Printed = None,
) -> None:
    """Check the file with the receivers of notifications, and send a test notification to each receiver, once."""
    found = read(file)
    chosen = [each for each in found.receivers if receiver in ("", each.name)]
    if not chosen:
        if not found.receivers:
            raise UsageError(f"{file} has no receivers")
        there = ", ".join(each.name for each in found.receivers)
        raise UsageError(f"{file} has no receiver {receiver!r}; there are: {there}")
    asyncio.run(_send(found, chosen, output))


async def _send(found: Receivers, chosen: list[Receiver], output: Format | None) -> None:
    now = int(time.time())
    occurrence = Occurrence(
        Event.TEST,
        now,
        namespace="altershield-test",
        kind="Test",
        workload="test",
        version="0" * 32,
        release="altershield-test",
        uid=f"test-{now}",
        reason="Test",
        message="Somebody ran `altershield notify test`.",
    )
    async with Outbound(allowed(chosen)) as outbound:
        sender = Sender(outbound, time.time)
        outcomes = await asyncio.gather(*(sender.send(each, occurrence, found.cluster) for each in chosen))
        # a test leaves no open alert
        sent = [each for each, outcome in zip(chosen, outcomes, strict=True) if isinstance(outcome, Sent)]
        over = replace(occurrence, resolved=True)
        await asyncio.gather(*(sender.send(each, over, found.cluster) for each in sent if each.type == Type.PAGERDUTY))
    made = NotificationTestList(
        tuple(
            NotificationTest(each.name, "" if isinstance(outcome, Sent) else outcome.reason)
            for each, outcome in zip(chosen, outcomes, strict=True)
        )
    )
    if output is None:
        for each in made.items:
            print(f"{each.receiver}: {each.problem or 'sent'}")
    else:
        write(made, output)
    failed = sum(bool(each.problem) for each in made.items)
    if failed:
        raise NotSentError(f"{failed} of {len(chosen)} receivers did not take the notification")
