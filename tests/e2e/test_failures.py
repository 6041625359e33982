"""Releases that fail in every way, and how each ends: rolled back, suspended, stalled or successful.

The releases run at the same time. A bad release is never in state Success, not even for a
moment, except if its pods break late.
"""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pytest

from altershield.api import labels
from altershield.api.annotations import START_TIMEOUT as START_TIMEOUT_SECONDS
from altershield.api.resources import API_VERSION
from tests.e2e.conftest import START_TIMEOUT, govern
from tests.e2e.history import History, ReleaseHistory, watching
from tests.e2e.kinds import (
    CLONE_SET,
    CLONE_SET_IN_PLACE,
    DAEMON_SET,
    DEPLOYMENT,
    ORDERED,
    PARALLEL,
    Kind,
    container,
)
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

pytestmark = pytest.mark.xdist_group("stories")

NAME = "app"
REPLICAS = 2
_WAVE = 8  # releases at the same time; more would make the machine slow
_PATIENTLY = {START_TIMEOUT_SECONDS: "300"}
"""The annotation of releases that are to succeed: on a busy machine, pods need longer than the start timeout."""
_SAID_LATE = ("never-ready:1", "nosuch:1", "nosecret:1", "badconfig:1", "busybox:2")
"""Images of pods of which the kubelet says why they are not ready. On a busy machine it takes long to say so."""
_SETTLES_SOON = {"settleSeconds": 3}
"""The policy of releases with this annotation: without it, they settle after the start timeout."""
_PAUSE = 1.5  # seconds between two waves of failing releases
KUBELET = "sandbox.altershield.io/kubelet"


class End(StrEnum):
    ROLLED_BACK = "rolled back"
    SUSPENDED = "suspended"
    STALLED = "stalled"
    NO_REPLICAS = "no replicas"
    SUCCESS = "success"


ENDED = (End.ROLLED_BACK, End.SUSPENDED)
"""Rolled back while older pods serve, else suspended. How fast the cluster replaces the pods decides."""


class Case(NamedTuple):
    name: str
    image: str
    ends: Sequence[End]
    says: str = ""
    """A part of the message about the failure, or the possible reasons of the stall."""
    kind: Kind = DEPLOYMENT
    after: str = "busybox:1"
    """The image that was released before; empty if there is none."""
    spec: Json = {}  # noqa: RUF012  (never changed)
    pod: Json = {}  # noqa: RUF012
    """More fields of the pod spec of the failing release."""
    words: str = ""
    """A part of the message of the condition PodsNotUp before the release ended, or of the condition Stalled."""
    passes_before: bool = False
    """The release may succeed first, because the pods break late."""
    policy: Json = {}  # noqa: RUF012
    """The spec of a DefensePolicy for the failing release."""
    level: str = ""
    """The Pod Security level that the namespace enforces for the failing release."""

    @property
    def annotations(self) -> Json:
        """Those of the release under test."""
        if self.is_good:
            return _PATIENTLY
        is_late = self.image in _SAID_LATE and self.ends in (ROLLED_BACK, SUSPENDED) and self.policy is not SOON
        return {START_TIMEOUT_SECONDS: "30"} if is_late else {}

    @property
    def is_good(self) -> bool:
        """Whether the release succeeds without a probe or an init container that extends the start timeout."""
        return self.ends == (End.SUCCESS,) and not self.pod


SLOWLY = {"minReadySeconds": 5}
ONLY_POD = {"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
"""The only pod is deleted before its successor exists."""
ROLLED_BACK, SUSPENDED, STALLED = (End.ROLLED_BACK,), (End.SUSPENDED,), (End.STALLED,)
TCP = {"tcpSocket": {"port": 80}}
HUGE = {"resources": {"requests": {"cpu": "4096"}}}
UNREADY = "container main: Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503"
ELSEWHERE = {"tolerations": [{"operator": "Exists"}]}
NO_ACCOUNT = {"serviceAccountName": "nobody"}
NOWHERE = {"nodeSelector": {"fails": "nowhere"}}
NO_DRIVER = {"volumes": [{"name": "data", "csi": {"driver": "nosuch.example.com"}}]}
SOON = {"unschedulableSeconds": START_TIMEOUT + 2}
SLOW = "ready-after-12s:1"
assert START_TIMEOUT < 12
CRASHING_INIT = {"initContainers": [{"name": "init", "image": "crash:init"}]}

CASES = (
    # pods that are ready at first
    Case("crashes", "exits-after-200ms:1", ENDED, "exit code 1"),
    Case("crashes-slowly-released", "exits-after-500ms:1", ROLLED_BACK, "exit code 1", spec=SLOWLY),
    Case("crashes-at-once", "crash:1", ROLLED_BACK, "container main: CrashLoopBackOff (exit code 1)"),
    Case("crashes-first", "exits-after-200ms:1", SUSPENDED, "exit code 1", after=""),
    Case("crashes-later", "exits-after-3s:1", ENDED, "exit code 1", passes_before=True),
    Case("crashes-once", "exits-once-after-500ms:1", (End.SUCCESS,)),
    Case("out-of-memory", "oom-after-500ms:1", ROLLED_BACK, "OOMKilled", spec=SLOWLY),
    Case("out-of-memory-first", "oom-after-200ms:1", SUSPENDED, "exit code 137", after=""),
    Case("loses-readiness", "unready-after-200ms:1", ENDED, UNREADY),
    Case("loses-readiness-later", "unready-after-3s:1", ENDED, UNREADY, passes_before=True),
    # on a machine that is slow, the pod can stay ready for longer than the observation time
    Case("flaps", "flaps-every-400ms:1", ENDED, UNREADY, spec=SLOWLY),
    Case("flaps-slowly", "flaps-every-3s:1", ENDED, UNREADY, passes_before=True),
    Case("completes", "completes-after-200ms:1", ENDED, "exit code 0"),
    # pods that are never ready
    Case("never-ready", "never-ready:1", ROLLED_BACK, UNREADY),
    Case("never-ready-first", "never-ready:1", SUSPENDED, UNREADY, after=""),
    Case("no-image", "nosuch:1", ROLLED_BACK, "ImagePull", words="does not come up: app-"),
    Case("no-image-first", "nosuch:1", SUSPENDED, "ImagePull", after="", words="not come up: app-"),
    Case("no-secret", "nosecret:1", ROLLED_BACK, 'FailedMount: MountVolume.SetUp failed for volume "data" : secret'),
    Case("bad-config", "badconfig:1", ROLLED_BACK, "CreateContainerConfigError"),
    Case("init-crashes", "busybox:2", ROLLED_BACK, "init container init: CrashLoop", pod=CRASHING_INIT, words="init: "),
    Case("recreate", "nosuch:1", SUSPENDED, "ImagePull", spec={"strategy": {"type": "Recreate"}}),
    Case("only-pod", "nosuch:1", ROLLED_BACK, "ImagePull", spec=ONLY_POD),
    Case("only-pod-statefulset", "crash:1", ROLLED_BACK, "exit code 1", ORDERED, spec={"replicas": 1}),
    # faults of the cluster
    Case("unschedulable", "busybox:2", STALLED, "Unschedulable", pod={"containers": [container("busybox:2", **HUGE)]}),
    Case("node-lost", "busybox:2", STALLED, "NodeNotReady", words="NodeNotReady: node fails-"),
    Case("no-volume", "noattach:1", STALLED, "VolumeNotAttached", words="AttachVolume.Attach failed for volume"),
    Case("no-network", "nonetwork:1", STALLED, "PodSandboxNotCreated", words="Failed to create pod sandbox: rpc error"),
    Case("quota", "busybox:2", STALLED, "FailedCreate"),
    Case("refused", "busybox:2", STALLED, "FailedCreate"),
    Case("no-account", "busybox:2", STALLED, "FailedCreate", pod=NO_ACCOUNT),
    # faults of the cluster that the release causes, under a policy that does not wait long
    Case(
        "asks-for-too-much",
        "busybox:2",
        ROLLED_BACK,
        "Insufficient cpu",
        pod={"containers": [container("busybox:2", **HUGE)]},
        policy=SOON,
    ),
    *(
        Case(
            f"wrong-selector-{kind.id}",
            "busybox:2",
            ROLLED_BACK,
            "node affinity/selector",
            kind,
            pod=NOWHERE,
            policy=SOON,
        )
        for kind in (DEPLOYMENT, ORDERED, CLONE_SET)
    ),
    Case("no-driver", "noattach:1", ROLLED_BACK, "after", pod=NO_DRIVER, policy=SOON),
    *(
        Case(f"no-account-{kind.id}", "busybox:2", ROLLED_BACK, '"nobody" not found', kind, pod=NO_ACCOUNT, policy=SOON)
        for kind in (DEPLOYMENT, ORDERED, DAEMON_SET, CLONE_SET)
    ),
    Case(
        "pod-security",
        "busybox:2",
        ROLLED_BACK,
        "violates PodSecurity",
        pod={"hostNetwork": True},
        policy=SOON,
        level="baseline",
    ),
    Case("not-its-fault", "busybox:2", STALLED, "FailedCreate", policy=SOON),
    # pods that need longer than the start timeout
    *(
        Case(
            f"starts-slowly-{kind.id}",
            SLOW,
            (End.SUCCESS,),
            kind=kind,
            pod={"containers": [container(SLOW, startupProbe={"periodSeconds": 1, "failureThreshold": 30, **TCP})]},
        )
        for kind in (DEPLOYMENT, ORDERED, CLONE_SET_IN_PLACE)
    ),
    Case(
        "is-asked-late",
        "busybox:2",
        (End.SUCCESS,),
        pod={"containers": [container("busybox:2", readinessProbe={"initialDelaySeconds": 12, **TCP})]},
    ),
    Case(
        "migrates",
        "busybox:2",
        (End.SUCCESS,),
        pod={"initContainers": [{"name": "migrate", "image": "completes-after-12s"}]},
    ),
    Case(
        "starts-too-slowly",
        SLOW,
        ROLLED_BACK,
        "is not up after",
        pod={"containers": [container(SLOW, startupProbe={"periodSeconds": 1, "failureThreshold": 10, **TCP})]},
    ),
    # no pods
    Case("no-replicas", "nosuch:1", (End.NO_REPLICAS,), after="", spec={"replicas": 0}),
    # other kinds
    *(
        Case(f"no-image-first-{kind.id}", "nosuch:1", SUSPENDED, "ImagePull", kind=kind, after="")
        for kind in (ORDERED, PARALLEL, DAEMON_SET, CLONE_SET)
    ),
    *(
        Case(
            f"crashes-slowly-released-{kind.id}",
            "exits-after-500ms:1",
            ROLLED_BACK,
            "exit code 1",
            kind=kind,
            spec=SLOWLY,
        )
        for kind in (ORDERED, PARALLEL, DAEMON_SET, CLONE_SET, CLONE_SET_IN_PLACE)
    ),
    *(
        Case(f"crashes-once-{kind.id}", "exits-once-after-500ms:1", (End.SUCCESS,), kind=kind)
        for kind in (ORDERED, DAEMON_SET, CLONE_SET_IN_PLACE)
    ),
    Case("never-ready-statefulset", "never-ready:1", ROLLED_BACK, UNREADY, kind=ORDERED),
    Case(
        "on-delete-statefulset",
        "nosuch:1",
        SUSPENDED,
        "ImagePull",
        ORDERED,
        "",
        {"updateStrategy": {"type": "OnDelete"}},
    ),
    Case(
        "unschedulable-daemonset",
        "busybox:2",
        STALLED,
        "Unschedulable",
        kind=DAEMON_SET,
        pod={"containers": [container("busybox:2", **HUGE)]},
    ),
    # in steps, only the first pods have the version
    *(
        Case(
            f"{image.partition(':')[0]}-{kind.id}-in-steps",
            image,
            ROLLED_BACK,
            says,
            kind,
            spec={"replicas": 4} if kind is not DAEMON_SET else {},
            policy={"rollout": {"pods": [1], "soakSeconds": 6}},
        )
        for image, says, kinds in (
            ("never-ready:1", UNREADY, (DEPLOYMENT, ORDERED)),
            ("nosuch:1", "ImagePull", (DAEMON_SET, CLONE_SET)),
            ("exits-after-3s:1", "exit code 1", (DEPLOYMENT, PARALLEL, DAEMON_SET, CLONE_SET_IN_PLACE)),
            ("unready-after-3s:1", UNREADY, (DEPLOYMENT,)),
        )
        for kind in kinds
    ),
    # the pod on the lost node exists until the node is back, so no other pod can have its ordinal
    Case("node-lost-statefulset", "busybox:2", STALLED, "NodeNotReady, PodTerminating", kind=PARALLEL),
)
BY_NAME = {case.name: case for case in CASES}


class Failures:
    """The selected cases, each released in its own namespace."""

    def __init__(self, admin: Kubectl, history: History, cases: Sequence[Case]) -> None:
        run = uuid.uuid4().hex[:6]
        self._admin = admin
        self._history = history
        self._cases = cases
        self._namespaces = {case.name: f"fails-{run}-{number}" for number, case in enumerate(cases)}
        self._versions: dict[str, str] = {}
        self.node = f"fails-{run}"
        self.before: dict[str, str] = {}
        """By case: the version that was released first."""

    @property
    def namespaces(self) -> list[str]:
        return list(self._namespaces.values())

    def kubectl(self, case: Case) -> Kubectl:
        return Kubectl(self._admin.kubeconfig, self._namespaces[case.name])

    def release(self) -> None:
        """Release the good images first, then the bad ones."""
        first = [case for case in self._cases if case.after]
        for wave in _waves(first):
            self._apply([(case, case.after, {}, _PATIENTLY) for case in wave])
            self.before |= self._read_versions(wave)
            for case in wave:
                self._until(
                    case, self.before[case.name], lambda release: release.state == "Success", "the first success"
                )
        self._break_cluster()
        self._set_rules()
        for wave in _waves(self._cases):
            self._apply([(case, case.image, case.pod, case.annotations) for case in wave])
            self._versions |= self._read_versions(wave)
            time.sleep(_PAUSE)

    def until(self, case: Case, met: object, waiting_for: str) -> ReleaseHistory:
        """Wait until `met` is true for the failing release, and return it."""
        return self._until(case, self._versions[case.name], met, waiting_for)

    def workload(self, case: Case) -> Json:
        return self.kubectl(case).json(case.kind.resource, NAME)

    def _until(self, case: Case, version: str, met: object, waiting_for: str) -> ReleaseHistory:
        assert callable(met)
        name = case.kind.change_workload_name(NAME, version)
        return self._history.until(self._namespaces[case.name], name, met, waiting_for)

    def _apply(self, releases: Sequence[tuple[Case, str, Json, Json]]) -> None:
        """Apply the workloads of these cases, each with an image, fields of the pod, and annotations."""
        items = []
        for case, image, pod, annotations in releases:
            on_node = {"nodeSelector": {"fails": self.node}, **ELSEWHERE} if "node-lost" in case.name else {}
            namespace = self._namespaces[case.name]
            spec = {"replicas": REPLICAS, **case.spec}
            made = case.kind.manifest(NAME, image, namespace=namespace, pod={**on_node, **pod}, **spec)
            made["metadata"]["annotations"] = annotations
            items.append(made)
        self._admin("apply", "--server-side", "-f", "-", stdin=_list(items))

    def _read_versions(self, cases: Sequence[Case]) -> dict[str, str]:
        found = {}
        for resource in {case.kind.resource for case in cases}:
            for obj in self._admin.json(resource, "--all-namespaces")["items"]:
                found[obj["metadata"]["namespace"]] = obj["metadata"]["labels"].get(labels.VERSION, "")
        return {case.name: found[self._namespaces[case.name]] for case in cases}

    def make_node(self) -> None:
        taint = {"key": "fails", "effect": "NoSchedule"}
        metadata = {"name": self.node, "labels": {"fails": self.node}, "annotations": {KUBELET: "up"}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [taint]}}
        self._admin("create", "-f", "-", stdin=json.dumps(node))
        self._admin.wait(f"node/{self.node}", "condition=Ready")

    def clean_up(self) -> None:
        self._admin.run("delete", "validatingwebhookconfiguration", self.node)
        self._admin.run("delete", "node", self.node)
        self._admin.delete_namespaces(*self.namespaces)

    def _break_cluster(self) -> None:
        names = {case.name for case in self._cases}
        if names & {"node-lost", "node-lost-statefulset"}:
            self._admin("annotate", "--overwrite", "node", self.node, f"{KUBELET}=down")
            self._admin.wait(f"node/{self.node}", "condition=Ready=Unknown")
        for case in self._cases:
            if case.name not in ("quota", "not-its-fault"):
                continue
            quota = {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "pods"},
                "spec": {"hard": {"pods": str(REPLICAS)}},
            }
            self._refuse_pods(case, quota, "quota")
        if "refused" in names:
            self._refuse_pods(BY_NAME["refused"], self._webhook(), "webhook")

    def _set_rules(self) -> None:
        """Create the policies of the failing releases, and set the Pod Security levels."""
        for case in self._cases:
            policy = case.policy or (_SETTLES_SOON if case.is_good else {})
            if policy:
                made = {
                    "apiVersion": API_VERSION,
                    "kind": "DefensePolicy",
                    "metadata": {"name": NAME},
                    "spec": policy,
                }
                self.kubectl(case).apply(json.dumps(made))
                self.kubectl(case).wait(f"defensepolicy/{NAME}", "condition=Accepted")
            if case.level:
                label = f"pod-security.kubernetes.io/enforce={case.level}"
                self._admin("label", "namespace", self._namespaces[case.name], label)

    def _refuse_pods(self, case: Case, by: Json, word: str) -> None:
        kubectl = self.kubectl(case)
        kubectl("create", "-f", "-", stdin=json.dumps(by))
        if by["kind"] == "ResourceQuota":
            # kube-controller-manager does this, but it does not run with every API server
            full = json.dumps({"status": {"hard": by["spec"]["hard"], "used": by["spec"]["hard"]}})
            kubectl("patch", "resourcequota", "pods", "--subresource=status", "--type=merge", "-p", full)

        def refused() -> bool:
            probe = kubectl.run("run", "probe", "--image=busybox", "--dry-run=server")
            return probe.returncode != 0 and word in probe.stderr

        eventually(refused, f"pods to be refused by the {word}")

    def _webhook(self) -> Json:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
        webhook = {
            "name": "pods.fails.test",
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespaces["refused"]}},
            "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.node},
            "webhooks": [webhook],
        }


def _waves(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    return (cases[at : at + _WAVE] for at in range(0, len(cases), _WAVE))


def _list(items: list[Json]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@pytest.fixture(scope="module")
def failures(request: pytest.FixtureRequest, installed: Path) -> Iterator[Failures]:
    if request.config.getoption("--kubeconfig") and not request.config.getoption("--simulate-nodes"):
        pytest.skip("images fail by their names on simulated nodes only")
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    names = {item.callspec.params["case"].name for item in items if hasattr(item, "callspec")}
    with watching(installed) as history:
        failures = Failures(Kubectl(installed, ""), history, [case for case in CASES if case.name in names])
        govern(installed, failures.namespaces)
        try:
            failures.make_node()
            failures.release()
            yield failures
        finally:
            failures.clean_up()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_failing_release_ends_as_expected(failures: Failures, case: Case) -> None:
    release = failures.until(case, lambda release: _ended(release, case.ends), " or ".join(case.ends))
    end = next(end for end in case.ends if _ends(release, end))
    _CHECKS[end](failures, case, release)
    assert any(case.words in message for message in release.said) or not case.words
    assert end is End.SUCCESS or case.passes_before or "Success" not in release.states
    failures.kubectl(case).delete_namespaces()


def _ended(release: ReleaseHistory, ends: Sequence[End]) -> bool:
    return any(_ends(release, end) for end in ends)


def _ends(release: ReleaseHistory, end: End) -> bool:
    match end:
        case End.ROLLED_BACK:
            return release.state == "Failed"
        case End.SUSPENDED:
            return release.state == "Suspend"
        case End.STALLED:
            return release.condition("Stalled").get("status") == "True"
        case End.NO_REPLICAS:
            return release.condition("NoReplicas").get("status") == "True"
        case End.SUCCESS:
            return release.condition("Settled").get("status") == "True"


def _rolled_back(failures: Failures, case: Case, release: ReleaseHistory) -> None:
    condition = release.condition("RolledBack")
    assert (condition["status"], condition["reason"]) == ("True", "PodNotUp")
    assert case.says in condition["message"]
    if "rollout" in case.policy:
        steps = release.status["rollout"]
        assert (steps["step"], steps["updated"], steps.get("passedSteps")) == (1, 1, None)
    workload = failures.workload(case)
    assert workload["metadata"]["labels"][labels.VERSION] == failures.before[case.name]
    assert workload["spec"]["template"]["spec"]["containers"][0]["image"] == case.after


def _suspended(failures: Failures, case: Case, release: ReleaseHistory) -> None:
    assert release.failed
    there = {pod["metadata"]["name"] for pod in failures.kubectl(case).json("pods")["items"]}
    assert {pod["pod"] for pod in release.failed} <= there
    for pod in release.failed:
        assert pod["verdict"] == "unpass"
        assert case.says in pod["message"]
    verified = release.condition("Verified")
    assert (verified["status"], verified["reason"]) == ("False", "FailedByHealth")
    eventually(lambda: labels.SUSPEND in failures.workload(case)["metadata"]["labels"], "the label suspend")
    changed = case.kind.manifest(NAME, "busybox:3", **case.spec)
    denied = failures.kubectl(case).run("apply", "--server-side", "-f", "-", stdin=json.dumps(changed))
    assert f"{case.kind.resource} {NAME} is suspended" in denied.stderr
    assert any(pod["pod"] in denied.stderr for pod in release.failed), "another pod may have failed since the denial"


def _stalled(failures: Failures, case: Case, release: ReleaseHistory) -> None:
    stalled = release.condition("Stalled")
    assert stalled["reason"] in case.says.split(", "), stalled["message"]
    _stays(release, "Running")
    assert release.condition("Stalled")["status"] == "True"
    assert labels.SUSPEND not in failures.workload(case)["metadata"]["labels"]
    stall_events = ("events", "--field-selector", "reason=ReleaseStalled")

    def announced() -> bool:
        messages = [event["message"] for event in failures.kubectl(case).json(*stall_events)["items"]]
        return any(reason in message for reason in case.says.split(", ") for message in messages)

    eventually(announced, "the Event")


def _no_replicas(failures: Failures, case: Case, release: ReleaseHistory) -> None:
    _stays(release, "Running")


def _succeeded(failures: Failures, case: Case, release: ReleaseHistory) -> None:
    assert release.state == "Success"


def _stays(release: ReleaseHistory, state: str) -> None:
    """Wait for another start timeout. Check that the release is still in this state and was in no other final state."""
    time.sleep(max(0.0, release.status["entryTimeUnix"] + 2 * START_TIMEOUT + 2 - time.time()))
    assert set(release.states) <= {"Init", state, "TimeOutPreThreshold"}
    assert release.state == state


_CHECKS = {
    End.ROLLED_BACK: _rolled_back,
    End.SUSPENDED: _suspended,
    End.STALLED: _stalled,
    End.NO_REPLICAS: _no_replicas,
    End.SUCCESS: _succeeded,
}
