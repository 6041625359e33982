"""The Job of a check `job`. Pure functions.

The name follows from the ChangePod, the check and the phase. So a second start finds the first Job, and never creates
another one.
"""

import copy
import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from altershield.api import labels
from altershield.api.check_specs import JobCheck
from altershield.api.resources import CHANGE_PODS
from kube_base.resources import JOBS
from reconciler.checks.check import Subject
from reconciler.checks.identity import check_id
from reconciler.checks.placeholders import PLACEHOLDER, unknown_placeholder, values_of

Object = dict[str, Any]

TTL_SECONDS = 600
"""How long a Job stays after its end, for people who read its logs. A template may set another time, up to a day."""

_SHORTEST_TTL = 300
"""A Job that was deleted before it is read again has no result: its failure would be lost."""

_LONGEST_TTL = 86_400
_MAX_VALUE = 64 * 1024  # characters of an env variable with replaced placeholders
_OURS = "antgroup.com/"  # a part of all keys of our labels and annotations


def job_name(subject: Subject) -> str:
    """At most 63 characters, so that the names of its pods, and the labels with its name, are valid."""
    digest = hashlib.sha256(check_id(subject).encode()).hexdigest()[:16]
    return f"{subject.check.name[:32].rstrip('-')}-{subject.phase.lower()}-{digest}"


def job(subject: Subject, check: JobCheck, now: float) -> Object:
    """The Job. `now` is in Unix seconds. ValueError: a part of the template is missing or invalid, or a
    placeholder is unknown."""
    template = copy.deepcopy(check.template)
    metadata, spec = _mapping(template, "metadata"), _mapping(template, "spec", required="spec")
    pod = _mapping(spec, "template", required="spec.template")
    pod_metadata, pod_spec = _mapping(pod, "metadata"), _mapping(pod, "spec", required="spec.template.spec")
    mark = {labels.CHECK: subject.check.name}
    left = max(1, math.ceil(subject.deadline - now))
    spec["activeDeadlineSeconds"] = min(left, _seconds(spec, "activeDeadlineSeconds", left))
    ttl = _seconds(spec, "ttlSecondsAfterFinished", TTL_SECONDS)
    spec["ttlSecondsAfterFinished"] = min(_LONGEST_TTL, max(_SHORTEST_TTL, ttl))
    pod["metadata"] = {
        "labels": _labels(pod_metadata) | mark,
        "annotations": _mapping(pod_metadata, "annotations"),
    }
    for container in _containers(pod_spec):
        container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    _replace(subject, pod_spec)
    change_pod = subject.change_pod.metadata
    owner = {
        "apiVersion": CHANGE_PODS.api_version,
        "kind": CHANGE_PODS.kind,
        "name": change_pod.name,
        "uid": change_pod.uid,
        "controller": True,
    }
    annotations = {str(key): str(value) for key, value in _mapping(metadata, "annotations").items()}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": job_name(subject),
            "namespace": change_pod.namespace,
            "labels": _labels(metadata) | mark,
            "annotations": {**annotations, labels.CHECK_ID: check_id(subject)},
            "ownerReferences": [owner],
        },
        "spec": {**spec, "template": pod},
    }


def problem(check: JobCheck) -> str:
    """Why no Job can be made of the template; empty if it looks right. The API server checks the rest."""
    try:
        spec = _mapping(check.template, "spec", required="spec")
        pod = _mapping(spec, "template", required="spec.template")
        pod_spec = _mapping(pod, "spec", required="spec.template.spec")
        for metadata in (_mapping(check.template, "metadata"), _mapping(pod, "metadata")):
            _mapping(metadata, "labels")
            _mapping(metadata, "annotations")
        for key in ("activeDeadlineSeconds", "ttlSecondsAfterFinished"):
            _seconds(spec, key, 0)
        for container in _containers(pod_spec):
            _objects(container, "env")
    except ValueError as error:
        return str(error)
    return ""


def is_shortened(check: JobCheck, active_deadline: int | None) -> bool:
    """Whether the Job's deadline is that of the check, and not that of the template."""
    spec = check.template.get("spec")
    own = spec.get("activeDeadlineSeconds") if isinstance(spec, dict) else None
    return own is None or (active_deadline or 0) < own


def _containers(pod_spec: Object) -> Iterator[Object]:
    for key in ("initContainers", "containers"):
        yield from _objects(pod_spec, key)


def _replace(subject: Subject, pod_spec: Object) -> None:
    values = {name: value.text for name, value in values_of(subject).items()}
    for container in _containers(pod_spec):
        for variable in _objects(container, "env"):
            if isinstance(text := variable.get("value"), str):
                variable["value"] = _replaced(text, values)


def _replaced(text: str, values: Mapping[str, str]) -> str:
    if wrong := unknown_placeholder(text):
        raise ValueError(wrong)
    replaced = PLACEHOLDER.sub(lambda match: values.get(match[1], ""), text)
    if len(replaced) > _MAX_VALUE:
        raise ValueError(f"an env variable is longer than {_MAX_VALUE} characters; the batch has too many pods for it")
    return replaced


def _objects(obj: Object, key: str) -> list[Object]:
    value = obj.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError(f"the template's {key} is no list of objects")
    return value


def _mapping(obj: Object, key: str, *, required: str = "") -> Object:
    value = obj.get(key)
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"the template has no object {required or key}")  # noqa: TRY004  (invalid input)
    return value


def _seconds(spec: Object, key: str, default: int) -> int:
    value = spec.get(key)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"the template's spec.{key} is not a number of seconds")
    return value


def _labels(metadata: Object) -> dict[str, str]:
    """The labels without ours: a pod of a check is no pod of a release."""
    found = _mapping(metadata, "labels")
    return {str(key): str(value) for key, value in found.items() if _OURS not in str(key)}
