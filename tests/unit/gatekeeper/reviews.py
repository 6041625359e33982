"""Workloads and AdmissionReviews as an API server sends them, and listers for the handlers.

Requests are about one kind at a time, by default Deployments. The fixture `every_kind` runs a module for each kind.
"""

import base64
import contextlib
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jsonpatch
import msgspec

from altershield import releases
from altershield.admission.webhooks import webhook_path
from altershield.api import labels, names
from altershield.api.budgets import PodUnavailableBudgetSpec
from altershield.api.change_workload import WorkloadRef
from altershield.api.gates.overrides import ReleaseOverride
from altershield.budgets.pods import Pod
from altershield.budgets.steps import Disruption, Passed, Refused
from altershield.flow_control.deletion import Deletion
from altershield.gates.gate import G, Gate
from altershield.gates.judge import judge, opens_at
from altershield.gates.limits import LIMITS
from altershield.gates.overrides import Asked, passing
from altershield.gates.release import Closed, Placed, selects_any, selects_namespace
from altershield.gates.release import Release as Judgeable
from altershield.policies.selection import InForce, applying, ranked
from altershield.policies.stored import Spec
from altershield.workloads import change_workload_name, named_kind
from gatekeeper import projection
from gatekeeper.budgets.judge import Budgets, Verdict
from gatekeeper.dispatch import decide
from gatekeeper.live import Found
from gatekeeper.projection import Release
from gatekeeper.records.flow_controls import Decided, FlowControls
from gatekeeper.records.overrides import Overridden
from gatekeeper.response import Answer
from gatekeeper.review import write
from gatekeeper.routes import Route, routes
from kube_base.resources import DEPLOYMENTS, Resource
from tests.support import workloads
from tests.unit.altershield.gates.placed import recent_admissions

Object = dict[str, Any]

RECONCILER = names.service_account_user()
UID = "09907f64-4eb8-47da-b46d-5ac0427ebf80"
OLD = "c6c45d23c098bdf181853a85b60b5d74"
NEW = "6a8ff823a5011291b0f02a1d83c2222d"


MUTATE, VALIDATE = "mutate", "validate"
MUTATING_PATH = webhook_path(DEPLOYMENTS, mutating=True)
VALIDATING_PATH = webhook_path(DEPLOYMENTS, mutating=False)

_about: list[Resource] = [DEPLOYMENTS]


def about() -> Resource:
    """The kind that requests are about at present."""
    return _about[-1]


def kind() -> str:
    """The present kind as messages name it."""
    return about().kind.lower()


@contextlib.contextmanager
def about_kind(resource: Resource) -> Iterator[None]:
    """Make requests about this kind inside the `with` block."""
    _about.append(resource)
    yield
    _about.pop()


ROUTES = routes()


def route(which: str) -> Route:
    """The route of the present kind; `which` is MUTATE or VALIDATE."""
    return ROUTES[webhook_path(about(), mutating=which == MUTATE)]


@dataclass
class StaticLive:
    """The objects that an API server would list, by the plural of their resource, or the error of each list."""

    objects: dict[str, list[Object]] = field(default_factory=dict)
    error: Exception | None = None

    async def count(
        self, resource: Resource, namespace: str, wanted: Callable[[Found], bool], **options: object
    ) -> int:
        if self.error is not None:
            raise self.error
        return sum(wanted(msgspec.convert(each, Found)) for each in self.objects.get(resource.plural, ()))


class NoBudgets:
    """The budgets of a cluster that has none."""

    def filled(self, namespace: str) -> bool:
        return True

    def protects(self, namespace: str) -> bool:
        return False

    def overlapping(self, namespace: str, spec: PodUnavailableBudgetSpec) -> str:
        return ""

    def cached_pod(self, namespace: str, name: str) -> Pod | None:
        return None

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        return None

    def decide(self, disruption: Disruption) -> Passed | Refused | None:
        return Passed()

    async def judge(self, disruption: Disruption) -> Verdict:
        return Passed()


@dataclass
class NoFlowControls:
    """The PodDeletionFlowControls of a cluster that has none."""

    filled = True
    exist = False

    def would_refuse(self, deletion: Deletion) -> bool:
        return False

    async def decide(self, deletion: Deletion, seconds: float) -> Decided | None:
        return None

    def decide_unread(self, pod: str) -> Decided | None:
        return None


@dataclass
class StaticPolicies:
    """The policies of the namespace of the requests, and of the system namespace."""

    own: list[InForce[Spec]] = field(default_factory=list)
    of_system: list[InForce[Spec]] = field(default_factory=list)
    filled: bool = True

    @property
    def have_steps(self) -> bool:
        return any(each.spec.rollout is not None for each in (*self.own, *self.of_system))

    def of(self, namespace: str, labels: Mapping[str, str]) -> InForce[Spec] | None:
        return applying((ranked(self.own), ranked(self.of_system)), labels)


@dataclass
class StaticGates:
    """The gates that a test sets, by their kind."""

    placed: dict[Gate[Any, Any], list[Placed]] = field(default_factory=dict)
    filled: bool = True
    namespace_labels: dict[str, str] = field(default_factory=dict)

    @property
    def exist(self) -> bool:
        return any(self.placed.values())

    def have(self, gate: Gate[Any, Any]) -> bool:
        return bool(self.placed.get(gate))

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        return self.namespace_labels

    def may_hold(self, namespace: str) -> bool:
        return True

    def may_be_closed(self, namespace: str, now: float) -> bool:
        return True

    def closed(self, release: Judgeable, now: float) -> tuple[Closed, ...]:
        return judge(release, self._objects, names.SYSTEM_NAMESPACE, now)

    def paces(self, release: Judgeable) -> bool:
        return any(each.paces for each in self.judging(LIMITS, release))

    def opens_at(self, release: Judgeable, now: float) -> float:
        return opens_at(release, self._objects, names.SYSTEM_NAMESPACE, now)

    def judging(self, gate: Gate[Any, G], release: Judgeable) -> Iterator[G]:
        for namespace in (names.SYSTEM_NAMESPACE, release.namespace):
            for each in self._objects(gate, namespace):
                if selects_namespace(each, release, names.SYSTEM_NAMESPACE) and selects_any(each, release):
                    yield cast(G, each)

    def _objects(self, gate: Gate[Any, Any], namespace: str) -> list[Placed]:
        return [each for each in self.placed.get(gate, ()) if each.namespace == namespace]


@dataclass
class StaticOverrides:
    """The ReleaseOverrides that a test sets, and the uses that were recorded. `problem`: of each record."""

    placed: list[ReleaseOverride] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)
    problem: str = ""

    def match(self, closed: Sequence[Closed], asked: Asked, now: float) -> bool:
        return passing(closed, self.placed, asked, names.SYSTEM_NAMESPACE, now) is not None

    async def use(self, closed: Sequence[Closed], asked: Asked, now: float, *, dry_run: bool) -> Overridden | None:
        found = passing(closed, self.placed, asked, names.SYSTEM_NAMESPACE, now)
        if found is not None and not dry_run:
            self.recorded += found
        return Overridden(tuple(found), self.problem) if found is not None else None


@dataclass
class StaticListers:
    """Listers whose content a test sets."""

    blocking: bool = True
    rollout: bool = True
    live: StaticLive = field(default_factory=StaticLive)
    budgets: Budgets = field(default_factory=NoBudgets)
    flow_controls: FlowControls = field(default_factory=NoFlowControls)
    policies: StaticPolicies = field(default_factory=StaticPolicies)
    gates: StaticGates = field(default_factory=StaticGates)
    overrides: StaticOverrides = field(default_factory=StaticOverrides)
    releases: dict[str, Release] = field(default_factory=dict)
    reconciler: str = RECONCILER

    def __post_init__(self) -> None:
        self.admissions = recent_admissions(self.gates)

    def release(self, namespace: str, workload: WorkloadRef, version: str) -> Release | None:
        found = self.releases.get(f"{namespace}/{change_workload_name(named_kind(workload), workload.name, version)}")
        return found if found is not None and releases.belongs(found, workload) else None

    def rolled_back(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return [release for release in self._of(namespace, workload) if releases.rolled_back(release)]

    def orphaned(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return [release for release in self._of(namespace, workload) if release.metadata.controller is None]

    def _of(self, namespace: str, workload: WorkloadRef) -> list[Release]:
        key = releases.workload_index_key(namespace, workload)
        found = [release for release in self.releases.values() if releases.release_index_key(release) == key]
        return [release for release in found if releases.belongs(release, workload)]


def deployment(
    image: str = "busybox", own: dict[str, str] | None = None, template_version: str | None = None, **more: str
) -> Object:
    """The workload `sleep` of the walkthrough. `review` changes its kind to the present one. `own` are more labels of
    the workload, `more` are more labels of the template."""
    if template_version is not None:
        more[labels.VERSION] = template_version
    container = {"name": "sleep", "command": ["/bin/sleep", "infinity"], "resources": {}}
    pods: Object = {"container": container, "securityContext": {}, "terminationGracePeriodSeconds": 30}
    metadata = {
        "namespace": "default",
        "uid": "a9b8b77c-ebaa-48d7-915f-bb8c02f5ce91",
        "annotations": {"deployment.kubernetes.io/revision": "1"},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
    }
    template = workloads.template("sleep", image, more, **pods)
    return workloads.manifest(
        "Deployment", "sleep", image, replicas=5, labels=own, metadata=metadata, template=template
    )


def released(image: str = "busybox", **own: str) -> Object:
    """A workload with a processed version. `own` are further labels, without their prefix."""
    version = version_of(deployment(image))
    further = {f"altershield.defense.antgroup.com/{key.replace('_', '-')}": value for key, value in own.items()}
    return deployment(image, {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED, **further}, version)


def relabelled(obj: Object, **changes: str | None) -> Object:
    """`obj` with changed labels, which are named without their prefix. None removes a label."""
    for name, value in changes.items():
        key = {"version": labels.VERSION, "defense_status": labels.DEFENSE_STATUS, "suspend": labels.SUSPEND}[name]
        if value is None:
            obj["metadata"]["labels"].pop(key)
        else:
            obj["metadata"]["labels"][key] = value
    return obj


def review(new: Object | None, old: Object | None = None, *, user: str = "kubernetes-admin", **request: Any) -> Object:
    """A review of a CREATE, or of an UPDATE if there is an `old` object."""
    resource = about()
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
            "name": "sleep",
            "namespace": "default",
            "operation": "CREATE" if old is None else "UPDATE",
            "userInfo": {"username": user, "groups": ["system:authenticated"]},
            "object": _sent(new),
            "oldObject": _sent(old),
            "dryRun": False,
            **request,
        },
    }


def _sent(obj: Object | None) -> Object | None:
    """The object with the present kind."""
    return obj and {**obj, "apiVersion": about().api_version, "kind": about().kind}


def encode(obj: Object) -> bytes:
    return json.dumps(obj).encode()


def written(uid: str, answer: Answer) -> bytes:
    """The body of the response, as the server writes it."""
    status = answer.denial.status if answer.denial is not None else None
    return write(uid, status=status, patch=answer.patch, warnings=answer.warnings, audit=answer.audit)


def ask(which: str, body: Object, listers: StaticListers | None = None) -> Object:
    """The `response` of the AdmissionReview that answers `body`."""
    served = route(which)
    wire = served.decode(encode(body))
    answer = json.loads(written(wire.uid, decide(served, wire, listers or StaticListers())))
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    assert answer["kind"] == "AdmissionReview"
    assert answer["response"]["uid"] == UID
    return answer["response"]  # type: ignore[no-any-return]


def mutate(
    new: Object, old: Object | None = None, listers: StaticListers | None = None, *, user: str = "kubernetes-admin"
) -> tuple[Object, list[str]]:
    """The workload after the patch, and the warnings."""
    response = ask(MUTATE, review(new, old, user=user), listers)
    assert response["allowed"]
    return patched(new, response), response.get("warnings", [])


def patched(obj: Object, response: Object) -> Object:
    """`obj` after the patch of the response."""
    if "patch" not in response:
        assert "patchType" not in response
        return obj
    assert response["patchType"] == "JSONPatch"
    operations = json.loads(base64.b64decode(response["patch"]))
    assert operations
    return jsonpatch.apply_patch(copy.deepcopy(obj), operations)  # type: ignore[no-any-return]


def validate(
    new: Object, old: Object | None = None, listers: StaticListers | None = None, *, user: str = "kubernetes-admin"
) -> Object:
    response = ask(VALIDATE, review(new, old, user=user), listers)
    assert "patch" not in response
    assert "patchType" not in response
    return response


def version_of(obj: Object) -> str:
    """The version that the gatekeeper gives to this workload."""
    stamped, _ = mutate(obj)
    version = stamped["metadata"]["labels"][labels.VERSION]
    assert stamped["spec"]["template"]["metadata"]["labels"][labels.VERSION] == version
    return str(version)


def release(
    version: str, *, spec: Object | None = None, owner: Object | None = None, **status: Any
) -> dict[str, Release]:
    """The ChangeWorkload of `sleep` at `version`, by its key. `status` has the names of the API."""
    name = change_workload_name(named_kind(about()), "sleep", version)
    metadata = {"name": name, "namespace": "default", "ownerReferences": [owner] if owner else []}
    obj = {"metadata": metadata, "spec": spec or {}, "status": status}
    return {f"default/{name}": projection.read(msgspec.json.encode(obj))}


def rolling_back(to: str = "busybox:2", *, stored: str = "busybox", **status: Any) -> dict[str, Release]:
    """The ChangeWorkload of the image `stored`, which is being rolled back to the image `to`, by its key."""
    target = {"fingerprint": version_of(deployment(to))}
    return release(version_of(deployment(stored)), status="Rollback", rollbackTarget=target, **status)
