"""A model of gatekeepers, reconcilers and an API server around the functions that decide about budgets.

Each process has caches of pods and of the budget that may be of any age. Each step of a process can be its last one. An
admitted request takes effect at any time until the API server gives it up, or never. No pod breaks by itself, so what
was admitted is all that makes pods unavailable: there are never fewer available pods than the budget asks for.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from altershield.api.budgets import Operation, PodUnavailableBudget, PodUnavailableBudgetStatus
from altershield.budgets import records
from altershield.budgets.changes import Changes
from altershield.budgets.decision import charge, step
from altershield.budgets.index import PodIndex
from altershield.budgets.numbers import Counted, counted, numbers
from altershield.budgets.pods import Flag, Pod
from altershield.budgets.steps import AwaitPods, Disruption, Passed, Refused, Reserve
from altershield.workloads.meta import packed
from tests.unit.altershield.budgets.builders import LABELS, NAMESPACE, NOW, SET, Cluster, budget, uid, web

REPLICAS = 3
GATEKEEPERS = 2
LEADERS = 2
SKEW = 2.0
"""Seconds by which each process's reading of the API server's clock is wrong at most."""


@dataclass
class Cures:
    """What keeps the budget. A test takes one out and expects the model to notice."""

    compares_versions: bool = True
    decides_again: bool = True
    answers_after_writing: bool = True


@dataclass
class Request:
    number: int
    gatekeeper: int
    pod: Pod
    operation: Operation
    began: float
    write: PodUnavailableBudget | None = None
    """A status that is about to be written, on the version that it rests on."""
    forced: bool = False
    admitted: bool = False


@dataclass
class Process:
    pods: int = 0
    """How many events of pods the cache has."""
    budgets: int = 0
    """The version of the budget in the cache."""
    live: dict[str, Pod | None] = field(default_factory=dict)
    write: PodUnavailableBudget | None = None
    skew: float = 0.0


class ViolationError(AssertionError):
    """Too few pods are available, or a slot does not come back."""


class Model:
    """`choose` picks one of some actions."""

    def __init__(self, choose: Callable[[int], int], cures: Cures | None = None) -> None:
        self.cures = cures or Cures()
        self.choose = choose
        self.now = NOW
        self.version = 10
        self.events: list[tuple[int, str, Pod | None]] = []
        self.pods: dict[str, Pod] = {}
        self.created = 0
        self.containers = 0
        self.updating: dict[str, str] = {}
        self.requests: list[Request] = []
        self.asked = 0
        self.log: list[str] = []
        self.scales: Cluster = web(REPLICAS)
        for number in range(REPLICAS):
            self._create(f"web-{number}", ready=True)
        first = budget(maxUnavailable=1, version=self.version)
        self.budgets = [first]
        count = len(self.events)
        self.gatekeepers = [Process(count, 0, skew=skew) for skew in (-SKEW, SKEW)][:GATEKEEPERS]
        self.leaders = [Process(count, 0, skew=skew) for skew in (SKEW, -SKEW)][:LEADERS]

    # the API server

    def _event(self, name: str, pod: Pod | None) -> None:
        self.version += 1
        if pod is None:
            self.pods.pop(name)
        else:
            pod = msgspec.structs.replace(pod, packed_version=self.version)
            self.pods[name] = pod
        self.events.append((self.version, name, pod))

    def _create(self, name: str, *, ready: bool) -> None:
        self.created += 1
        self.containers += 1
        flags = int(Flag.READY if ready else 0)
        pod = Pod(
            NAMESPACE, name, packed(uid(self.created)), 0, SET, dict(LABELS), flags, f"web={self.containers:012}", 1
        )
        self._event(name, pod)

    def _store(self, wanted: PodUnavailableBudget, *, forced: bool = False) -> bool:
        """A PUT. False: another version was stored meanwhile."""
        stored = self.budgets[-1]
        same = wanted.metadata.resource_version == stored.metadata.resource_version
        if not same and self.cures.compares_versions and not forced:
            return False
        self.version += 1
        metadata = msgspec.structs.replace(stored.metadata, resource_version=str(self.version))
        self.budgets.append(msgspec.structs.replace(wanted, metadata=metadata))
        return True

    # what a process knows

    def _known(self, process: Process) -> tuple[dict[str, Pod], int]:
        found: dict[str, Pod] = {}
        for _, name, pod in self.events[: process.pods]:
            if pod is None:
                found.pop(name, None)
            else:
                found[name] = pod
        return found, self.events[process.pods - 1][0]

    # the actions

    def actions(self) -> list[list[tuple[str, Callable[[], None]]]]:
        """The possible actions, by kind. Each kind is chosen equally often, or as often as it is listed."""
        kinds = [
            self._asks(),
            *[self._requests()] * 3,
            self._views(),
            *[self._of_leaders()] * 2,
            *[self._of_pods()] * 2,
        ]
        kinds.append([(f"{seconds} s pass", lambda s=seconds: self._wait(s)) for seconds in (1, 16, 35)])
        return [each for each in kinds if each]

    def _asks(self) -> list[tuple[str, Callable[[], None]]]:
        if len(self.requests) >= 3:
            return []
        return [
            (
                f"gatekeeper {number} is asked to {operation} {name}",
                lambda n=number, p=pod, o=operation: self._ask(n, p, o),
            )
            for number in range(GATEKEEPERS)
            for name, pod in self.pods.items()
            for operation in (Operation.DELETE, Operation.UPDATE)
            if not pod.terminating
        ]

    def _requests(self) -> list[tuple[str, Callable[[], None]]]:
        found: list[tuple[str, Callable[[], None]]] = []
        for request in self.requests:
            label = f"request {request.number}"
            if request.admitted:
                found += [(f"{label} takes effect", lambda r=request: self._take_effect(r))]
            found += [(f"{label} goes on", lambda r=request: self._go_on(r))] * (0 if request.admitted else 2)
            found += [(f"{label} is killed", lambda r=request: self.requests.remove(r))] * (self.choose(4) == 0)
        return found

    def _views(self) -> list[tuple[str, Callable[[], None]]]:
        found: list[tuple[str, Callable[[], None]]] = []
        for kind, group in (("gatekeeper", self.gatekeepers), ("leader", self.leaders)):
            for number, process in enumerate(group):
                if process.pods < len(self.events):
                    found.append((f"{kind} {number} sees one event", lambda p=process: self._see(p, 1)))
                    found.append((f"{kind} {number} sees all events", lambda p=process: self._see(p, 999)))
                if process.budgets < len(self.budgets) - 1:
                    found += [(f"{kind} {number} sees the budget", lambda p=process: self._see_budget(p))] * 2
        return found

    def _of_leaders(self, number: int | None = None) -> list[tuple[str, Callable[[], None]]]:
        number = self.choose(LEADERS) if number is None else number
        leader = self.leaders[number]
        if leader.write is not None:
            return [(f"leader {number} writes", lambda: self._write(leader))]
        return [
            (f"leader {number} settles", lambda: self._settle(leader)),
            (f"leader {number} sees all and settles", lambda: self._see_and_settle(leader)),
        ]

    def _of_pods(self) -> list[tuple[str, Callable[[], None]]]:
        found: list[tuple[str, Callable[[], None]]] = []
        for number in range(REPLICAS):
            name = f"web-{number}"
            pod = self.pods.get(name)
            if pod is None:
                found.append((f"{name} is created", lambda n=name: self._create(n, ready=False)))
                continue
            if pod.terminating:
                found.append((f"{name} is gone", lambda n=name: self._event(n, None)))
                continue
            if self.updating.get(name) == "accepted":
                found.append((f"{name} stops its container", lambda n=name: self._stop(n)))
            if self.updating.get(name) == "stopped":
                found.append((f"{name} starts its container", lambda n=name: self._start(n)))
            elif not pod.ready:
                ready = msgspec.structs.replace(pod, flags=int(Flag.READY))
                found.append((f"{name} is ready", lambda n=name, p=ready: self._event(n, p)))
        return found

    def act(self) -> None:
        kinds = self.actions()
        actions = kinds[self.choose(len(kinds))]
        label, action = actions[self.choose(len(actions))]
        self.log.append(label)
        action()
        self.check()

    def play(self, *labels: str) -> None:
        """Do these actions. One that is not possible is left out: a cure prevents it."""
        for label in labels:
            kinds = [
                self._asks(),
                self._requests(),
                self._views(),
                self._of_pods(),
                *map(self._of_leaders, range(LEADERS)),
            ]
            actions = dict(each for kind in kinds for each in kind)
            if label in actions:
                self.log.append(label)
                actions[label]()
            elif label.endswith("s pass"):
                self._wait(float(label.split()[0]))
            self.check()

    def check(self) -> None:
        available = sum(pod.available for pod in self.pods.values())
        gone = sum(1 for number in range(REPLICAS) if f"web-{number}" not in self.pods)
        unavailable = REPLICAS - available
        if unavailable > 1:
            raise ViolationError(f"{available} pods are available, {gone} are gone: {self.log}")

    def _wait(self, seconds: float) -> None:
        self.now += seconds
        # an API server gives a request up, also one that waits for a gatekeeper
        self.requests = [each for each in self.requests if self.now - each.began <= records.REQUEST_SECONDS]

    def _see(self, process: Process, count: int) -> None:
        process.pods = min(process.pods + count, len(self.events))

    def _see_budget(self, process: Process) -> None:
        process.budgets = len(self.budgets) - 1

    def _ask(self, gatekeeper: int, pod: Pod, operation: Operation) -> None:
        self.asked += 1
        self.requests.append(Request(self.asked, gatekeeper, pod, operation, self.now))

    def _disruption(self, request: Request) -> Disruption:
        update = request.operation == Operation.UPDATE
        made = Changes(restarted=("web",)) if update else Changes()
        return Disruption(request.operation, request.pod, "somebody", changes=made)

    def _go_on(self, request: Request) -> None:
        process = self.gatekeepers[request.gatekeeper]
        if request.write is not None:
            wanted, request.write = request.write, None
            if self._store(wanted, forced=request.forced):
                process.budgets = len(self.budgets) - 1
                request.admitted = True
            else:
                process.budgets = len(self.budgets) - 1  # a live read
                if not self.cures.decides_again:
                    status = self.budgets[-1].status
                    mine = records.records_for(wanted.status, request.operation)[request.pod.uid]
                    changed = {**records.records_for(status, request.operation), request.pod.uid: mine}
                    field_ = "disrupted_pods" if request.operation == Operation.DELETE else "unavailable_pods"
                    request.write = msgspec.structs.replace(
                        self.budgets[-1], status=msgspec.structs.replace(status, **{field_: changed})
                    )
            return
        world = _World(self, process)
        now = self.now + process.skew
        disruption = self._disruption(request)
        match step(disruption, world, now):
            case Passed():
                request.admitted = True
            case Refused():
                self.requests.remove(request)
            case AwaitPods():
                self._see(process, 999)
            case Reserve(found):
                status, (excess,) = charge(found, [disruption], world, now)
                if excess is not None:
                    request.write = msgspec.structs.replace(found, status=status)
                    if not self.cures.answers_after_writing:
                        request.admitted = True

    def _take_effect(self, request: Request) -> None:
        self.requests.remove(request)
        pod = self.pods.get(request.pod.name)
        if pod is None or pod.packed_uid != request.pod.packed_uid or pod.terminating:
            return
        if request.operation == Operation.DELETE:
            self._event(pod.name, msgspec.structs.replace(pod, flags=pod.flags | Flag.TERMINATING))
            self.updating.pop(pod.name, None)
        elif not self.updating.get(pod.name):
            self.updating[pod.name] = "accepted"
            self._event(pod.name, pod)

    def _stop(self, name: str) -> None:
        self.updating[name] = "stopped"
        self._event(name, msgspec.structs.replace(self.pods[name], flags=0))

    def _start(self, name: str) -> None:
        del self.updating[name]
        self.containers += 1
        changed = msgspec.structs.replace(
            self.pods[name], flags=int(Flag.READY), containers=f"web={self.containers:012}"
        )
        self._event(name, changed)

    def _see_and_settle(self, leader: Process) -> None:
        self._see(leader, 999)
        self._see_budget(leader)
        self._settle(leader)

    def _settle(self, leader: Process) -> None:
        known, seen = self._known(leader)
        found = self.budgets[leader.budgets]
        if leader.live:
            live, leader.live = leader.live, {}
        else:
            live = {}
        result = records.settled(
            found.status, find=known.get, covered=lambda _: True, seen=seen, now=self.now + leader.skew, live=live
        )
        if result.unread and not live:
            leader.live = {name: self.pods.get(name) for name in result.unread}
        after = numbers(_counted(found, known.values(), self.scales), _with(found.status, result))
        status = result.on(found.status, after, 1)
        if status != found.status:
            leader.write = msgspec.structs.replace(found, status=status)

    def _write(self, leader: Process) -> None:
        wanted, leader.write = leader.write, None
        if wanted is not None:
            self._store(wanted)
            leader.budgets = len(self.budgets) - 1

    # the end: everything comes back

    def finish(self) -> None:
        """After some time without requests, every slot is free again."""
        self.requests = []
        for leader in self.leaders:
            leader.write = None
        for _ in range(3):
            for number in range(REPLICAS):
                self._bring_up(f"web-{number}")
        for _ in range(4):
            self.now += 310
            self._settle_alone(self.leaders[0])
        status = self.budgets[-1].status
        if status.disrupted_pods or status.unavailable_pods:
            raise ViolationError(f"a record stays: {status}: {self.log}")
        process = self.gatekeepers[0]
        self._see(process, 999)
        self._see_budget(process)
        request = Request(0, 0, self.pods["web-0"], Operation.DELETE, self.now)
        for _ in range(3):
            if not request.admitted:
                self.requests = [request]
                self._go_on(request)
        if not request.admitted:
            raise ViolationError(f"a deletion is refused for ever: {status}: {self.log}")

    def _bring_up(self, name: str) -> None:
        pod = self.pods.get(name)
        if pod is not None and pod.terminating:
            self._event(name, None)
        if name not in self.pods:
            self._create(name, ready=True)
        elif self.updating.get(name) == "accepted":
            self._stop(name)
        if self.updating.get(name) == "stopped":
            self._start(name)
        if not self.pods[name].ready:
            self._event(name, msgspec.structs.replace(self.pods[name], flags=int(Flag.READY)))

    def _settle_alone(self, leader: Process) -> None:
        self._see(leader, 999)
        self._see_budget(leader)
        for _ in range(3):
            self._settle(leader)
            self._write(leader)
            self._see_budget(leader)


def _with(status: PodUnavailableBudgetStatus, found: records.Settled) -> PodUnavailableBudgetStatus:
    return msgspec.structs.replace(status, disrupted_pods=found.disrupted_pods, unavailable_pods=found.unavailable_pods)


def _counted(found: PodUnavailableBudget, known: Any, scales: Cluster) -> Counted:
    return counted(found, PodIndex(known).groups(NAMESPACE), scales)


class _World:
    """What a gatekeeper knows."""

    def __init__(self, model: Model, process: Process) -> None:
        self.known, self.seen = model._known(process)
        self._cluster = model.scales
        self._budget = model.budgets[process.budgets]

    def scales(self, namespace: str) -> Cluster:
        return self._cluster

    def is_terminating(self, namespace: str) -> bool:
        return False

    def budgets(self, namespace: str) -> Sequence[PodUnavailableBudget]:
        return [self._budget]

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self.known.get(name)

    def counted(self, budget: PodUnavailableBudget) -> tuple[Counted, int]:
        return _counted(budget, self.known.values(), self._cluster), self.seen

    def blocking_pdb(self, pod: Pod) -> str:
        return ""


def walk(seed: int, cures: Cures | None = None, *, steps: int = 70) -> None:
    """One random walk, and its end."""
    source = random.Random(seed)  # noqa: S311  (not for cryptography)
    model = Model(lambda count: math.floor(source.random() * count), cures)
    for _ in range(steps):
        model.act()
    model.finish()
