"""The effects of decisions, carried out on the simulated cluster."""

from typing import Any

import msgspec

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus
from altershield.api.change_workload import SourceRef
from altershield.api.meta import plain_time
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta, OwnerReference
from reconciler.batches.release_checks import approved
from reconciler.batches.repeating import repeated
from reconciler.cluster.release import Release
from reconciler.cluster.verdicts import is_repeatable
from reconciler.releases.terms.effects import (
    After,
    AllowRepair,
    Announce,
    Before,
    CreateBatch,
    Decision,
    Mark,
    Overrule,
    Pause,
    ReleaseAgain,
    Remove,
    Repeat,
    RestoreLabel,
    Resume,
    SetThreshold,
    Suspend,
    Unpause,
)

from .pods import NAMESPACE
from .storage import Storage


class Killed(Exception):  # noqa: N818  (of a reconciler, not of a test)
    """The reconciler died between two writes."""


class Conflicted(Exception):  # noqa: N818
    """The object was changed since it was read."""


class WriteRefused(Exception):  # noqa: N818
    """A policy of the cluster refuses the write."""


class Executor(Storage):
    def __init__(self, kind: str, *, replicas: int, observe: float, start_timeout: float) -> None:
        super().__init__(kind, replicas=replicas, observe=observe, start_timeout=start_timeout)
        self.write_refused = ""
        """Why a policy refuses the release of an older template."""
        self.announced: list[Announce] = []
        self.resumed_by: list[str] = []

    @property
    def reasons(self) -> list[str]:
        return [each.reason for each in self.announced]

    def _carry_out(self, release: Release, workload: Workload, decision: Decision) -> None:
        for effect in decision.before:
            self._change_pods(release, effect)
        for effect in decision.before:
            self._change_workload(release, effect)
        if decision.status is not None:
            self._write("status")
            self._save(release, decision)
        for after in decision.after:
            self._change_after_the_status(after)
        if decision.lists and self.groups is not None:
            self.groups.lists_are_written()

    def _change_pods(self, release: Release, effect: Before) -> None:
        """The effects on pods and their batches, which come first."""
        match effect:
            case Mark(pod, at):
                self._label(pod, "mark", labels.OPERATE_FINISHED, str(at))
            case RestoreLabel(obj):
                self._label(obj, "put back", labels.VERSION, names.version_in(release.metadata.name))
            case CreateBatch():
                self._write("create batch")
                self._create_batch(release, effect)
            case Overrule():
                self._write("overrule")
                self._overrule(effect)

    def _change_workload(self, release: Release, effect: Before) -> None:
        match effect:
            case AllowRepair():
                self._write("allow repair")
                self.own_labels[labels.IGNORED_SUSPEND] = "true"
            case SetThreshold(count):
                self._write("threshold")
                whole = self.releases[names.version_in(release.metadata.name)]
                spec = msgspec.structs.replace(whole.spec, count_threshold=count)
                self._store(msgspec.structs.replace(whole, spec=spec))
            case Resume():
                self._write("resume")
                self.own_labels.pop(labels.SUSPEND, None)
                self.resumed_by.append(self.version)

    def _change_after_the_status(self, effect: After) -> None:
        match effect:
            case Suspend(since):
                self._write("suspend")
                self.own_labels[labels.SUSPEND] = str(since)
            case Pause(held_version):
                self._write("pause")
                self.paused = self.held = True
                self.held_version = held_version
            case Unpause():
                self._write("continue")
                self.held, self.paused = False, self.paused_again
            case ReleaseAgain(target):
                self._release_again(target)
            case Remove(obj):
                self._write("remove")
                self._remove(obj)
            case Repeat(batch):
                self._write("repeat")
                change_pod = self.batches[batch.metadata.name]
                assert is_repeatable(change_pod)
                self._store_batch(change_pod, repeated(change_pod, self.now))
            case Announce():
                self.announced.append(effect)

    def _label(self, obj: Any, write: str, label: str, value: str) -> None:
        pod = self.pods.get(obj.metadata.uid)
        if pod is not None:
            self._write(write)
            pod.pod_labels[label] = value
            self.touch(pod)

    def _save(self, release: Release, decision: Decision) -> None:
        status = decision.status
        assert status is not None
        whole = self.releases[names.version_in(release.metadata.name)]
        if not decision.lists:
            status = msgspec.structs.replace(
                status,
                defense_preparing_pods=whole.status.defense_preparing_pods,
                defense_checking_pods=whole.status.defense_checking_pods,
                defense_check_pass_pods=whole.status.defense_check_pass_pods,
            )
        self._store(msgspec.structs.replace(whole, status=status))

    def _create_batch(self, release: Release, effect: CreateBatch) -> None:
        name = names.change_pod_name(release.metadata.name, effect.number)
        if name in self.batches:
            raise Conflicted(name)
        metadata = ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"batch-{name}",
            generation=1,
            owner_references=(
                OwnerReference(
                    "ChangeWorkload",
                    release.metadata.name,
                    release.metadata.uid,
                    "app.ops.cloud.alipay.com/v1alpha1",
                    controller=True,
                ),
            ),
        )
        spec = ChangePodSpec(release.metadata.name, plain_time(self.now), int(self.now), effect.pods, effect.failed_by)
        generation = release.spec.workload_generation if effect.phase else 0
        spec = msgspec.structs.replace(spec, phase=effect.phase, step=effect.step, workload_generation=generation)
        self._store_batch(ChangePod(metadata, spec), ChangePodStatus())

    def _overrule(self, effect: Overrule) -> None:
        change_pod = self.batches[effect.batch.metadata.name]
        if change_pod.spec.phase:
            self._store_batch(change_pod, approved(change_pod.status, change_pod, effect.message, self.now))
            return
        others = tuple(each for each in change_pod.status.pod_results if each.pod not in effect.pods)
        passed = tuple(
            msgspec.structs.replace(info, verdict="pass", message=effect.message, by=effect.by)
            for info in change_pod.spec.pod_infos
            if info.pod in effect.pods
        )
        self._store_batch(change_pod, msgspec.structs.replace(change_pod.status, pod_results=(*others, *passed)))

    def _release_again(self, target: SourceRef) -> None:
        if self.write_refused:
            raise WriteRefused(self.write_refused)
        self._write("release again")
        image = next(image for image, revision in self.revisions.items() if revision["metadata"]["uid"] == target.uid)
        self.release(image, version=target.version or target.fingerprint)

    def _remove(self, obj: Any) -> None:
        name = obj.metadata.name
        if name in self.batches:
            del self.batches[name]
            self.groups = None
        else:
            self.releases.pop(names.version_in(name), None)
            gone = obj.metadata.uid
            self.batches = {
                key: each for key, each in self.batches.items() if each.metadata.owner_references[0].uid != gone
            }
