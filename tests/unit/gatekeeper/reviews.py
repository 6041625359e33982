"""Workloads and AdmissionReviews as an API server sends them, and a view for the gates.

All of it is about one kind at a time, Deployments first; modules with the fixture `every_kind` are run for each.
"""

import base64
import contextlib
import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec

from altershield import releases
from altershield.admission.webhooks import webhook_path
from altershield.api import labels, names
from altershield.api.kinds import WorkloadRef
from altershield.api.resources import DEPLOYMENTS, Resource
from altershield.workloads import change_workload_name
from gatekeeper import projection
from gatekeeper.dispatch import decide
from gatekeeper.projection import Release
from gatekeeper.response import Answer
from gatekeeper.review import write
from gatekeeper.routes import Route, routes

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
    """The kind that requests are about now."""
    return _about[-1]


def kind() -> str:
    """As in messages."""
    return about().kind.lower()


@contextlib.contextmanager
def about_kind(resource: Resource) -> Iterator[None]:
    """Let requests be about this kind."""
    _about.append(resource)
    yield
    _about.pop()


ROUTES = routes()


def route(which: str) -> Route:
    """The present kind's; MUTATE or VALIDATE."""
    return ROUTES[webhook_path(about(), mutating=which == MUTATE)]


@dataclass
class StaticListers:
    """What the caches hold, said by a test."""

    blocking: bool = True
    releases: dict[str, Release] = field(default_factory=dict)
    reconciler: str = RECONCILER

    def release(self, namespace: str, workload: WorkloadRef, version: str) -> Release | None:
        found = self.releases.get(f"{namespace}/{change_workload_name(workload.kind, workload.name, version)}")
        return found if found is not None and releases.belongs(found, workload) else None

    def rolled_back(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return [release for release in self._of(namespace, workload) if releases.rolled_back(release)]

    def orphaned(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return [release for release in self._of(namespace, workload) if release.metadata.controller is None]

    def _of(self, namespace: str, workload: WorkloadRef) -> list[Release]:
        family = releases.family(namespace, workload)
        found = [release for release in self.releases.values() if releases.family_of(release) == family]
        return [release for release in found if releases.belongs(release, workload)]


def deployment(
    image: str = "busybox",
    own: dict[str, str] | None = None,
    template_version: str | None = None,
    **more: str,
) -> Object:
    """The walkthrough's `sleep`; requests send it as one of the kind that they are about. `own` are labels of the
    workload besides its `app`, `more` labels of the template."""
    template_labels = {"app": "sleep", **more}
    if template_version is not None:
        template_labels[labels.VERSION] = template_version
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "sleep",
            "namespace": "default",
            "uid": "a9b8b77c-ebaa-48d7-915f-bb8c02f5ce91",
            "labels": {"app": "sleep", **(own or {})},
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
        },
        "spec": {
            "replicas": 5,
            "selector": {"matchLabels": {"app": "sleep"}},
            "template": {
                "metadata": {"labels": template_labels},
                "spec": {
                    "containers": [
                        {"name": "sleep", "image": image, "command": ["/bin/sleep", "infinity"], "resources": {}}
                    ],
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
            },
        },
    }


def released(image: str = "busybox", **own: str) -> Object:
    """A workload whose release was stamped and processed. `own` are further labels, without their prefix."""
    version = version_of(deployment(image))
    further = {f"altershield.defense.antgroup.com/{key.replace('_', '-')}": value for key, value in own.items()}
    return deployment(image, {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED, **further}, version)


def review(new: Object | None, old: Object | None = None, *, user: str = "kubernetes-admin", **request: Any) -> Object:
    """A CREATE, or with `old` an UPDATE."""
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
    """As one of the present kind."""
    return obj and {**obj, "apiVersion": about().api_version, "kind": about().kind}


def encode(obj: Object) -> bytes:
    return json.dumps(obj).encode()


def written(uid: str, answer: Answer) -> bytes:
    """As the server writes it."""
    status = answer.denial.status if answer.denial is not None else None
    return write(uid, status=status, patch=answer.patch, warnings=answer.warnings, audit=answer.audit)


def ask(which: str, body: Object, view: StaticListers | None = None) -> Object:
    """The response as it is sent."""
    asked = route(which)
    wire = asked.decode(encode(body))
    answer = json.loads(written(wire.uid, decide(asked, wire, view or StaticListers())))
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    assert answer["kind"] == "AdmissionReview"
    assert answer["response"]["uid"] == UID
    return answer["response"]  # type: ignore[no-any-return]


def mutate(
    new: Object, old: Object | None = None, view: StaticListers | None = None, *, user: str = "kubernetes-admin"
) -> tuple[Object, list[str]]:
    """What a workload becomes, and the warnings."""
    response = ask(MUTATE, review(new, old, user=user), view)
    assert response["allowed"]
    return patched(new, response), response.get("warnings", [])


def patched(obj: Object, response: Object) -> Object:
    """`obj` with the response's patch applied, as the API server would."""
    if "patch" not in response:
        assert "patchType" not in response
        return obj
    assert response["patchType"] == "JSONPatch"
    operations = json.loads(base64.b64decode(response["patch"]))
    assert operations
    return jsonpatch.apply_patch(copy.deepcopy(obj), operations)  # type: ignore[no-any-return]


def validate(
    new: Object, old: Object | None = None, view: StaticListers | None = None, *, user: str = "kubernetes-admin"
) -> Object:
    response = ask(VALIDATE, review(new, old, user=user), view)
    assert "patch" not in response
    assert "patchType" not in response
    return response


def version_of(obj: Object) -> str:
    """The version that this workload gets when it is created."""
    stamped, _ = mutate(obj)
    version = stamped["metadata"]["labels"][labels.VERSION]
    assert stamped["spec"]["template"]["metadata"]["labels"][labels.VERSION] == version
    return str(version)


def release(
    version: str, *, spec: Object | None = None, owner: Object | None = None, **status: Any
) -> dict[str, Release]:
    """The ChangeWorkload of `sleep` at `version`, as a view holds it. `status` as on the wire."""
    name = change_workload_name(about().kind, "sleep", version)
    metadata = {"name": name, "namespace": "default", "ownerReferences": [owner] if owner else []}
    obj = {"metadata": metadata, "spec": spec or {}, "status": status}
    return {f"default/{name}": projection.read(msgspec.json.encode(obj))}
