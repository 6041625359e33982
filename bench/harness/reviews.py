"""AdmissionReviews, as API servers send them.

The Deployments of releases are as after `kubectl apply`: they have its annotation, which repeats the manifest, and the
managed fields of kubectl and of the Deployment controller.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from altershield.api import labels
from kube_base.resources import DEPLOYMENTS, Resource

_BODIES = 16  # different reviews, sent in turn

Object = dict[str, Any]
Make = Callable[[int, int], dict[str, Any]]
"""Makes a review from its number and a number of environment variables."""


def write_reviews(directory: Path, name: str, length: int, make: Make | None = None) -> list[Path]:
    """Write files with different reviews of about `length` bytes, by default of releases. Returns their paths."""
    files = []
    make = make or release
    for number in range(_BODIES):
        small = len(json.dumps(make(number, 0), separators=(",", ":")))
        one_more = max(1, len(json.dumps(make(number, 1), separators=(",", ":"))) - small)
        body = json.dumps(make(number, max(0, length - small) // one_more), separators=(",", ":"))
        files.append(directory / f"{name.replace(' ', '')}-{number}.json")
        files[-1].write_text(body)
    return files


def review(
    resource: Resource,
    operation: str,
    namespace: str,
    name: str,
    new: Object | None,
    old: Object | None,
    *,
    number: int = 0,
    **more: Any,
) -> Object:
    """A review of a request for this object. `number` distinguishes reviews; `more` are other fields of the request."""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    plural = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    request = {
        "uid": f"09907f64-4eb8-47da-b46d-5ac0427e{number:04x}",
        **{"kind": kind, "requestKind": kind, "resource": plural, "requestResource": plural},
        **{"name": name, "namespace": namespace, "operation": operation},
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        **{"object": new, "oldObject": old, "dryRun": False},
        "options": {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request | more}


def release(number: int, variables: int) -> Object:
    """A review of the update of a Deployment with a number of environment variables."""
    old, new = _deployment("busybox:0", variables), _deployment(f"busybox:{number + 1}", variables)
    return review(DEPLOYMENTS, "UPDATE", "default", "sleep", new, old, number=number)


def _deployment(image: str, variables: int) -> dict[str, Any]:
    version = "c6c45d23c098bdf181853a85b60b5d74"
    container = {
        "name": "sleep",
        "image": image,
        "command": ["/bin/sleep", "infinity"],
        "env": [{"name": f"VARIABLE_{n}", "value": f"the value of variable {n}"} for n in range(variables)],
    }
    defaults = {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {
            "name": "sleep",
            "namespace": "default",
            "uid": "a9b8b77c-ebaa-48d7-915f-bb8c02f5ce91",
            "resourceVersion": "199426",
            "generation": 2,
            "creationTimestamp": "2023-05-11T07:46:13Z",
            "labels": {"app": "sleep", labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED},
            "annotations": {
                "deployment.kubernetes.io/revision": "1",
                "kubectl.kubernetes.io/last-applied-configuration": json.dumps(
                    _manifest(container), separators=(",", ":")
                ),
            },
            "managedFields": managed_fields(variables),
        },
        "spec": {
            "replicas": 5,
            "selector": {"matchLabels": {"app": "sleep"}},
            "template": {
                "metadata": {"labels": {"app": "sleep", labels.VERSION: version}},
                "spec": {
                    "containers": [container | defaults],
                    "restartPolicy": "Always",
                    "terminationGracePeriodSeconds": 30,
                    "dnsPolicy": "ClusterFirst",
                    "securityContext": {},
                    "schedulerName": "default-scheduler",
                },
            },
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
        "status": {"observedGeneration": 2, "replicas": 5, "updatedReplicas": 5, "readyReplicas": 5},
    }


def _manifest(container: dict[str, Any]) -> dict[str, Any]:
    """What was applied."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"annotations": {}, "labels": {"app": "sleep"}, "name": "sleep", "namespace": "default"},
        "spec": {
            "replicas": 5,
            "selector": {"matchLabels": {"app": "sleep"}},
            "template": {"metadata": {"labels": {"app": "sleep"}}, "spec": {"containers": [container]}},
        },
    }


def managed_fields(variables: int) -> list[dict[str, Any]]:
    """The managed fields of an object that kubectl applied, and whose container has so many environment variables."""
    names = (f"VARIABLE_{n}" for n in range(variables))
    container: dict[str, Any] = {
        ".": {},
        "f:command": {},
        "f:env": {".": {}, **{f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in names}},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:resources": {},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    }
    pod = {
        "f:containers": {'k:{"name":"sleep"}': container},
        "f:dnsPolicy": {},
        "f:restartPolicy": {},
        "f:schedulerName": {},
        "f:securityContext": {},
        "f:terminationGracePeriodSeconds": {},
    }
    applied = {
        "f:metadata": {"f:annotations": {}, "f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:progressDeadlineSeconds": {},
            "f:replicas": {},
            "f:revisionHistoryLimit": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
            "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": pod},
        },
    }
    observed = {
        "f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}},
        "f:status": {"f:observedGeneration": {}, "f:readyReplicas": {}, "f:replicas": {}, "f:updatedReplicas": {}},
    }
    return [_managed("kubectl-client-side-apply", applied, ""), _managed("kube-controller-manager", observed, "status")]


def _managed(manager: str, fields: dict[str, Any], subresource: str) -> dict[str, Any]:
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "apps/v1",
        "time": "2023-05-11T07:46:13Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**entry, "subresource": subresource} if subresource else entry
