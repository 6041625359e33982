"""The command lines of `altershield breaker`."""

import asyncio
import sys
from typing import Annotated

import msgspec
import typer

from altershield.api.flow_control import Breaker, BreakerMode, BreakerState, Mode, PodDeletionFlowControl
from altershield.api.names import is_name
from altershield.api.resources import POD_DELETION_FLOW_CONTROLS
from altershield.flow_control import breaker as breakers
from altershield.flow_control.decision import Working
from altershield.process import options
from altershield.views import permission
from altershield.views.current_user import user
from command.columns import Columns
from command.output import ObjectFormat, PrintedObject, say, write_objects
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.access.server_clock import ServerClock
from kube_base.errors import ReportedError, UsageError

EXIT_OPEN = 3
"""Of `altershield breaker status`: a breaker is open."""

_READERS = "view"
_WRITERS = "altershield-breaker"

_HEADER = ("NAME", "MODE", "BREAKER", "SINCE", "CAUSE", "USED", "PENDING", "TOP SOURCE")

app = typer.Typer(help="Show, open and reset the breakers that stop all deletions of pods.", no_args_is_help=True)


class BreakerError(ReportedError):
    """A breaker could not be shown or changed."""


Name = Annotated[str, typer.Argument(metavar="NAME", help="The PodDeletionFlowControl.", show_default=False)]


@app.command()
def status(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The PodDeletionFlowControl. Default: all.", show_default=False)
    ] = "",
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show the breakers, the deletions that count, and who deletes most.

    The exit code is 3 if a breaker is open, else 0.
    """
    found, now = asyncio.run(_read(context, kubeconfig, name))
    works = [Working(policy, now) for policy in found]
    if output is not None:
        write_objects([msgspec.to_builtins(each) for each in found], output, single=bool(name))
    elif works:
        rows = [_HEADER, *map(_row, works)]
        sys.stdout.writelines(f"{line}\n" for line in Columns(len(_HEADER)).lines(rows))
    else:
        print("No PodDeletionFlowControls found.", file=sys.stderr)
    raise typer.Exit(EXIT_OPEN if any(work.breaker.state == BreakerState.OPEN for work in works) else 0)


@app.command(name="open")
def open_(
    name: Name,
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Open a breaker: every deletion that the PodDeletionFlowControl counts is refused.

    With the mode Manual, until a person resets the breaker; with Auto, until its cooldown is over. It takes the
    permission to patch poddeletionflowcontrols/status, which the ClusterRole altershield-breaker has.
    """
    policy = asyncio.run(_change(context, kubeconfig, name, wanted=BreakerState.OPEN))
    passes = "passes with a warning, because spec.mode is Warn" if policy.spec.mode == Mode.WARN else "is refused"
    _report(policy, f"the breaker is open: every deletion that it counts {passes}", output)


@app.command()
def reset(
    name: Name,
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Reset a breaker: deletions within the limits pass again.

    Deletions that were counted before still count until their interval is over. It takes the permission to patch
    poddeletionflowcontrols/status, which the ClusterRole altershield-breaker has.
    """
    policy = asyncio.run(_change(context, kubeconfig, name, wanted=BreakerState.CLOSED))
    _report(policy, "the breaker is closed: deletions within the limits pass", output)


async def _read(context: str | None, kubeconfig: str | None, name: str) -> tuple[list[PodDeletionFlowControl], float]:
    """The policies, and the time of the API server."""
    clock = ServerClock()
    async with await Client.connect(kubeconfig, context=context) as client:
        client.on_date(clock.update)
        if name:
            return [await _get(client, name, _READERS)], clock()
        try:
            listed = await client.list(POD_DELETION_FLOW_CONTROLS, as_=PodDeletionFlowControl)
        except NotFoundError:
            raise BreakerError(f"AlterShield is not installed in the cluster at {client.server}") from None
        except ForbiddenError as error:
            role = permission.role(_READERS, "")
            raise BreakerError(permission.refused("list PodDeletionFlowControls", error, role)) from error
        return listed.items, clock()


async def _get(client: Client, name: str, role: str) -> PodDeletionFlowControl:
    """`role`: the ClusterRole with the permissions of the command."""
    if not is_name(name):
        raise UsageError(f'no PodDeletionFlowControl can have the name "{name}"')
    try:
        return await client.get(POD_DELETION_FLOW_CONTROLS, name, as_=PodDeletionFlowControl)
    except NotFoundError as error:
        raise BreakerError(f"there is no PodDeletionFlowControl {name}: {error}") from error
    except ForbiddenError as error:
        asked = permission.role(role, "")
        raise BreakerError(permission.refused(f"read PodDeletionFlowControl {name}", error, asked)) from error


async def _change(
    context: str | None, kubeconfig: str | None, name: str, *, wanted: BreakerState
) -> PodDeletionFlowControl:
    """Write the state of a breaker, unless it has it already."""
    clock = ServerClock()
    async with await Client.connect(kubeconfig, context=context) as client:
        client.on_date(clock.update)
        policy = await _get(client, name, _WRITERS)
        if wanted == BreakerState.OPEN and policy.spec.breaker.mode == BreakerMode.OFF:
            raise BreakerError(
                f"PodDeletionFlowControl {name} has no breaker: spec.breaker.mode is Off; "
                f"to have one, set it to {BreakerMode.MANUAL} or {BreakerMode.AUTO}"
            )
        now = int(clock())
        old = breakers.current(policy.status.breaker, policy.spec, now)
        if old.state == wanted:
            return policy
        by = await user(client)
        new = breakers.opened_by(old, by, now) if wanted == BreakerState.OPEN else breakers.reset_by(by, now)
        fields = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(Breaker))
        patch = {"status": {"breaker": {**fields, **msgspec.to_builtins(new), "state": str(new.state)}}}
        try:
            return await client.patch(
                POD_DELETION_FLOW_CONTROLS, patch, name, subresource="status", as_=PodDeletionFlowControl
            )
        except ForbiddenError as error:
            attempt = f"change the breaker of PodDeletionFlowControl {name}"
            raise BreakerError(permission.refused(attempt, error, permission.role(_WRITERS, ""))) from error


def _row(work: Working) -> tuple[str, ...]:
    spec, breaker = work.policy.spec, work.breaker
    cause = f"rule {breaker.rule}" if breaker.rule else breaker.opened_by
    return (
        work.name,
        str(spec.mode),
        f"{breaker.state} ({spec.breaker.mode})",
        breaker.since,
        cause,
        ", ".join(f"{tally.used}/{tally.rule.limit} in {tally.rule.interval}" for tally in work.tallies),
        str(len(work.pending)),
        ", ".join(f"{each.by} ({each.count})" for each in work.sources[:1]),
    )


def _report(policy: PodDeletionFlowControl, text: str, output: ObjectFormat | None) -> None:
    say(f"PodDeletionFlowControl {policy.metadata.name}: {text}", output)
    write_objects([msgspec.to_builtins(policy)], output, single=True)
