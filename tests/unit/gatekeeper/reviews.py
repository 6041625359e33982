"""Deployments and AdmissionReviews as an API server sends them, and a view for the gates."""

import base64
import copy
import json
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec

from altershield.api import labels, names
from altershield.install.webhooks import MUTATING_WEBHOOK, VALIDATING_WEBHOOK
from gatekeeper.gates import decide
from gatekeeper.review import read, write
from gatekeeper.view import Record

Object = dict[str, Any]

RECONCILER = names.service_account_user()
UID = "09907f64-4eb8-47da-b46d-5ac0427ebf80"
OLD = "c6c45d23c098bdf181853a85b60b5d74"
NEW = "6a8ff823a5011291b0f02a1d83c2222d"


@dataclass
class StaticView:
    """What the caches hold, said by a test."""

    blocking: bool = True
    records: dict[str, Record] = field(default_factory=dict)
    reconciler: str = RECONCILER

    def record(self, namespace: str, workload: str, uid: str, version: str) -> Record | None:
        return self.records.get(f"{namespace}/{names.change_workload_name(workload, version)}")

    def has_rolled_back(self, namespace: str) -> bool:
        return any(record.rolled_back for record in self.records.values())


def deployment(
    image: str = "busybox",
    own: dict[str, str] | None = None,
    template_version: str | None = None,
    **more: str,
) -> Object:
    """The walkthrough's `sleep`. `own` are labels of the workload besides its `app`, `more` labels of the
    template."""
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
    """A Deployment whose release was stamped and processed. `own` are further labels, without their prefix."""
    version = version_of(deployment(image))
    further = {f"altershield.defense.antgroup.com/{key.replace('_', '-')}": value for key, value in own.items()}
    return deployment(image, {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED, **further}, version)


def review(new: Object | None, old: Object | None = None, *, user: str = "kubernetes-admin", **request: Any) -> Object:
    """A CREATE, or with `old` an UPDATE."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "name": "sleep",
            "namespace": "default",
            "operation": "CREATE" if old is None else "UPDATE",
            "userInfo": {"username": user, "groups": ["system:authenticated"]},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            **request,
        },
    }


def encode(obj: Object) -> bytes:
    return json.dumps(obj).encode()


def ask(webhook: str, body: Object, view: StaticView | None = None) -> Object:
    """The response as it is sent."""
    read_review = read(encode(body))
    answer = json.loads(write(read_review.uid, decide(webhook, read_review, view or StaticView())))
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    assert answer["kind"] == "AdmissionReview"
    assert answer["response"]["uid"] == UID
    return answer["response"]  # type: ignore[no-any-return]


def mutate(new: Object, old: Object | None = None, *, user: str = "kubernetes-admin") -> tuple[Object, list[str]]:
    """What a Deployment becomes, and the warnings."""
    response = ask(MUTATING_WEBHOOK, review(new, old, user=user))
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
    new: Object, old: Object | None = None, view: StaticView | None = None, *, user: str = "kubernetes-admin"
) -> Object:
    response = ask(VALIDATING_WEBHOOK, review(new, old, user=user), view)
    assert "patch" not in response
    assert "patchType" not in response
    return response


def version_of(obj: Object) -> str:
    """The version that this Deployment gets when it is created."""
    stamped, _ = mutate(obj)
    version = stamped["metadata"]["labels"][labels.VERSION]
    assert stamped["spec"]["template"]["metadata"]["labels"][labels.VERSION] == version
    return str(version)


def record(version: str, **status: Any) -> dict[str, Record]:
    """The ChangeWorkload of `sleep` at `version`, as a view holds it. `status` as on the wire."""
    name = names.change_workload_name("sleep", version)
    obj = {"metadata": {"name": name, "namespace": "default"}, "status": status}
    return {f"default/{name}": msgspec.convert(obj, Record)}
