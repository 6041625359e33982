"""What does one decision on a large release cost, and how much is written in a whole release?

Measured: a release whose pods come up one by one, ten a second, in this process and without an API. The pods are in the
reconciler's `PodGroups`; decisions are carried out at once. Times are the minimum of several runs, in CPU time.

How to read it: the first decision builds the groups of all pods; the event loop is held meanwhile. A later decision
must not depend on the number of pods.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from altershield.api import names
from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus, PodState
from altershield.api.change_workload import ChangeWorkload
from altershield.api.ops_config import Settings
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.workloads import BY_KIND, pods
from altershield.workloads.pods import Pod
from bench.harness.answer import Answer
from bench.simulated.objects import Objects
from bench.simulated.shape import Shape
from kube_base.meta import ObjectMeta, OwnerReference
from kube_base.resources import DEPLOYMENTS
from reconciler.cluster import batch
from reconciler.cluster import release as projection
from reconciler.cluster.writer import merge_patch
from reconciler.releases.decisions.decide import decide
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import Timing
from reconciler.releases.terms.effects import CreateBatch
from reconciler.releases.terms.snapshot import Snapshot

SIZES = (100, 1000, 10_000)
_REPEATS = 200
_TIMING = Timing(3600, 10)
_LISTS = ("defensePreparingPods", "defenseCheckingPods", "defenseCheckPassPods")


@dataclass(frozen=True)
class Result:
    pods: int
    anew_ms: float
    """Time to build the groups and to decide. All times here are the minimum of several runs."""
    changed_ms: float
    """Time to decide after one pod has changed, if no list is due."""
    writes: int
    """Number of status writes in a whole release whose pods come up one by one, ten per second."""
    bytes_per_pod: int
    """Size of all these writes, divided by the number of pods."""


async def ask(
    pods: Annotated[list[int] | None, typer.Option(help="Pods of a release, instead of 100, 1,000 and 10,000.")] = None,
) -> Answer:
    results = [_measure(count) for count in pods or SIZES]
    table = Table("pods", "decision on all pods", "decision on one changed pod", "status writes", "bytes per pod")
    for each in results:
        times = (f"{each.anew_ms:.1f} ms", f"{each.changed_ms:.3f} ms")
        table.add_row(f"{each.pods:,}", *times, str(each.writes), f"{each.bytes_per_pod:,}")
    return Answer({"releases": [asdict(each) for each in results]}, [table])


class Nodes:
    def node_ready(self, node: str) -> bool:
        return True

    def node_lost(self, node: str) -> bool:
        return False

    def node_ready_at(self, node: str) -> float:
        return 0.0

    def node_labels(self) -> dict[str, dict[str, str]]:
        return {}


class Release:
    """A release with a number of pods that has just begun: its pods are not ready."""

    def __init__(self, count: int) -> None:
        objects = Objects(Shape(count, deployments=1, largest=count, revisions=1, fat=0, namespaces=1))
        self.workload = BY_KIND[DEPLOYMENTS.group_kind].read(objects.maker("deployments", metadata_only=False)(0))
        self.whole = msgspec.json.decode(objects.maker("changeworkloads", metadata_only=False)(0), type=ChangeWorkload)
        status = self.whole.status
        self.source = status.source
        self.began = float(self.whole.spec.create_time_unix)
        self.now = self.began
        self.release = projection.read(msgspec.json.encode(msgspec.structs.replace(self.whole, status=type(status)())))
        self.whole = msgspec.structs.replace(self.whole, status=type(status)())
        make = objects.maker("pods", metadata_only=False)
        self.up: Sequence[Pod] = [pods.read(make(number)) for number in range(count)]
        self.writes = self.bytes = 0
        self.groups = self.build_groups([self.down(pod) for pod in self.up])

    def down(self, pod: Pod) -> Pod:
        return msgspec.structs.replace(pod, ready=False, ready_at=int(self.began), finished="")

    def build_groups(self, found: Sequence[Pod]) -> PodGroups:
        groups = PodGroups(self.workload, self.release, self.source, Nodes(), _TIMING)
        for pod in found:
            groups.update_pod(pod, self.now)
        return groups

    def decide(self) -> Any:
        self.groups.refresh(self.workload, self.now)
        snapshot = Snapshot(
            release=self.release,
            workload=self.workload,
            groups=self.groups,
            others=(),
            settings=Settings(),
            timing=_TIMING,
            source=self.source,
            previous=self.release.status.previous,
            pods_read=True,  # the groups are what the API server would return
        )
        return decide(snapshot, self.now)

    def step(self) -> float | None:
        """Decide, and carry out the decision. Returns the seconds until the next decision."""
        decision = self.decide()
        for effect in decision.before:
            if isinstance(effect, CreateBatch):
                self.groups.update_batch(self.done(effect))
        if decision.status is not None:
            patch = merge_patch(msgspec.to_builtins(self.release.status), msgspec.to_builtins(decision.status))
            for name in _LISTS:
                if decision.lists:
                    patch.setdefault(name, None)
                else:
                    patch.pop(name, None)
            self.writes += 1
            self.bytes += len(json.dumps(patch))
            status = decision.status
            if not decision.lists:
                lists = ("defense_preparing_pods", "defense_checking_pods", "defense_check_pass_pods")
                status = msgspec.structs.replace(status, **{each: getattr(self.whole.status, each) for each in lists})
            self.whole = msgspec.structs.replace(self.whole, status=status)
            self.release = projection.read(msgspec.json.encode(self.whole))
            if decision.lists:
                self.groups.lists_are_written()
        again: float | None = (
            0.0 if decision.before else decision.requeue_after
        )  # events of batches trigger the next decision
        return again

    def done(self, effect: CreateBatch) -> batch.Batch:
        """A batch without a check, which counts as passed."""
        metadata = self.release.metadata
        owner = OwnerReference(
            CHANGE_WORKLOADS.kind, metadata.name, metadata.uid, CHANGE_WORKLOADS.api_version, controller=True
        )
        own = ObjectMeta(
            name=names.change_pod_name(metadata.name, effect.number),
            namespace=metadata.namespace,
            uid=f"batch-{effect.number}",
            resource_version="1",
            owner_references=(owner,),
        )
        spec = ChangePodSpec(metadata.name, "", int(self.now), effect.pods)
        return batch.project(ChangePod(own, spec, ChangePodStatus(status=PodState.EXECUTE_DONE)))


def _measure(count: int) -> Result:
    release = Release(count)
    release.step()
    for number, pod in enumerate(release.up):
        release.now = release.began + 1 + number / 10
        release.groups.update_pod(msgspec.structs.replace(pod, finished=str(int(release.now))), release.now)
        release.step()
    for _ in range(10_000):
        again = release.step()
        if again is None:
            break
        release.now += max(again, 0.01)
    writes, written = release.writes, release.bytes
    state = str(release.release.status.status)
    if state != "Success":
        raise RuntimeError(f"the release ended as {state}")
    anew, changed = [], []
    for _ in range(max(3, 10_000 // count)):
        began = time.process_time()
        release.groups = release.build_groups(release.up)
        release.decide()
        anew.append(time.process_time() - began)
    release = Release(count)
    release.groups = release.build_groups(release.up)
    for _ in range(3):
        release.now += 10
        release.step()
    for number in range(_REPEATS):
        pod = release.up[number % count]
        release.now += 0.01
        release.groups.update_pod(release.down(pod) if number % 2 else pod, release.now)
        began = time.process_time()
        release.decide()
        changed.append(time.process_time() - began)
    return Result(count, _ms(anew), _ms(sorted(changed)[: _REPEATS // 2]), writes, written // count)


def _ms(seconds: Sequence[float]) -> float:
    return round(min(seconds) * 1000, 3)
