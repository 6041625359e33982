"""Does every release end correctly and once, while the leading reconciler is killed again and again?

Measured: three reconcilers, of which one leads. In each round five good Deployments and a broken one are released, then
the leader is killed: in each round a little later in the release, and in every third round during a rollback.

How to read it: every version must have one ChangeWorkload and one verdict, each of its pods must be verified once, and
each broken version must be rolled back once. Events about rollbacks may be lost with the leader; none may be repeated.
"""

import collections
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.availability.answering import Kubeconfig, answered
from bench.availability.gatekeepers import Gatekeepers
from bench.availability.history import History, Object, wrong_with
from bench.availability.installation import installed
from bench.availability.reconcilers import Reconcilers
from bench.harness.answer import Answer
from bench.harness.deployments import create, release
from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS, EVENTS
from reconciler.manager import COMPONENT

_GOOD = 5  # Deployments that are released in every round
_REPLICAS = 4
_ROLLBACK_EVENTS = ("RollbackStarted", "RolledBack")


@dataclass(frozen=True)
class Result:
    kills: int
    in_mid_release: int
    """Number of kills during verifications or rollbacks."""
    releases: int
    rollbacks: int
    wrong: tuple[str, ...]
    lost_events: int
    """Number of missing Events about rollbacks."""
    takeover: float
    """The longest time in seconds from a kill until another reconciler led."""


async def ask(
    kubeconfig: Kubeconfig = None,
    kills: Annotated[int, typer.Option(min=1, help="How many leading reconcilers to kill.")] = 10,
) -> Answer:
    return await answered("Releases while the leading reconciler is killed", kubeconfig, measure, kills)


async def measure(
    kubeconfig: Path, directory: Path, kills: int, report: Callable[[str], None] = lambda _: None
) -> Result:
    """In each round, update all good Deployments, and update another Deployment to an image that does not exist. Then
    kill the leader: in each round a little later in the release, and in every third round during a rollback."""
    async with installed(kubeconfig, directory) as installation:
        admin, namespace = installation.admin, installation.name
        history = History(admin, namespace)
        reconcilers = Reconcilers(installation, directory)
        gatekeepers = Gatekeepers(installation, directory, shutdown_delay=0)
        async with gatekeepers.running(replicas=1), history.watching(), reconcilers.running():
            good = [f"good-{number}" for number in range(_GOOD)]
            bad = [f"bad-{number}" for number in range(kills)]
            released = {name: [await create(admin, namespace, name, _REPLICAS)] for name in (*good, *bad)}
            await history.until_successful(released)
            these = {name: released[name] for name in good}
            in_mid_release, takeovers = 0, []
            for number in range(kills):
                report(f"killing leader {number + 1} of {kills} …")
                leader = await reconcilers.leader()
                moment = _moment(history, number)
                for name in good:
                    released[name].append(await release(admin, namespace, name, str(number)))
                released[bad[number]].append(await release(admin, namespace, bad[number], str(number), "nosuch"))
                await history.until(moment)
                in_mid_release += history.rolling_back or not history.successful(these)
                takeovers.append(await reconcilers.kill(leader))
                await history.until_successful(these)
            report("waiting for the rollbacks …")
            await history.until(lambda: all(history.is_rolled_back(name, released[name][-1]) for name in bad))
            await history.until(lambda: all(history.successes(name, released[name][0]) == 2 for name in bad))
            deployments: list[Object] = (await admin.list(DEPLOYMENTS, namespace)).items
            wrong = wrong_with(history, deployments, released, rolled_back=bad, replicas=_REPLICAS)
            missing, surplus = await _events(admin, namespace, bad)
    return Result(
        kills=kills,
        in_mid_release=in_mid_release,
        releases=sum(map(len, released.values())),
        rollbacks=len(bad),
        wrong=(*wrong, *surplus),
        lost_events=missing,
        takeover=round(max(takeovers), 1),
    )


def _moment(history: History, number: int) -> Callable[[], bool]:
    """A function that returns whether it is time to kill. It is called after every write."""
    if number % 3 == 2:
        before = history.rollbacks
        return lambda: history.rollbacks > before
    wanted = history.changes + 3 * number + 1
    return lambda: history.changes >= wanted


async def _events(admin: Client, namespace: str, rolled_back: Sequence[str]) -> tuple[int, list[str]]:
    """The number of missing Events about rollbacks, and messages about repeated or wrong Events."""
    expected = collections.Counter((name, reason) for name in rolled_back for reason in _ROLLBACK_EVENTS)
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    surplus = []
    listed: list[Object] = (await admin.list(EVENTS, namespace)).items
    for event in listed:
        if event.get("reportingComponent") == COMPONENT:
            about = (event["involvedObject"]["name"], event["reason"])
            seen[about] += event.get("count") or 1
            if seen[about] > expected[about]:
                surplus.append(f"unexpected Event on {about[0]}: {event['reason']}: {event['message']}")
    return (expected - seen).total(), surplus
