"""The objects of the simulated cluster, by number."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from altershield.api import labels, names, resources
from altershield.api.condition_types import ConditionType
from altershield.api.meta import plain_time
from altershield.api.ops_config import DEFAULTS
from altershield.api.ops_config_info import OpsConfigInfo, OpsConfigInfoStatus
from altershield.workloads import BY_KIND
from bench.simulated.shape import Shape
from bench.simulated.templates import CREATED, LISTED, RELEASED, condition, templates
from kube_base.meta import ObjectMeta
from kube_base.resources import DEPLOYMENTS, Resource
from kube_base.times import rfc3339

_OF_WORKLOADS = ("deployments", "replicasets", "pods", "changeworkloads", "changepods")
_SPREAD = 2 * 86400  # seconds over which the releases are spread


class Objects:
    """Makes the objects of each resource, by number."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.counts = {
            **dict.fromkeys((each.plural for each in vars(resources).values() if isinstance(each, Resource)), 0),
            "namespaces": shape.namespaces + 1,
            "opsconfiginfoes": len(DEFAULTS),
            "nodes": shape.nodes,
            "customresourcedefinitions": 0,
            "statefulsets": 0,
            "daemonsets": 0,
            "deployments": shape.deployments,
            "replicasets": shape.deployments * shape.revisions,
            "pods": shape.pods,
            "changeworkloads": shape.deployments,
            "changepods": shape.pods,
            "podunavailablebudgets": shape.budgets,
            "poddisruptionbudgets": 0,
            "configmaps": 0,
            "controllerrevisions": 0,
        }
        self._encoded: dict[tuple[str, int, bool], bytes] = {}
        read = BY_KIND[DEPLOYMENTS.group_kind].read
        self._versions = [
            read(self._template("deployments", number) % self._fields(number, b"")).fingerprint.encode()
            for number in range(shape.deployments)
        ]

    def numbers(self, plural: str, namespace: str) -> range:
        """The numbers of the objects in a namespace; all numbers if `namespace` is empty. Numbers above the count are
        large objects in a namespace that is not governed."""
        count = self.counts[plural]
        if not namespace:
            return range(count + (self._shape.fat if plural in _OF_WORKLOADS else 0))
        at = int(namespace.rpartition("-")[2])
        size = (self._shape.deployments if plural in _OF_WORKLOADS else count) // self._shape.namespaces
        first, last = at * size, (at + 1) * size
        return range(self._first(plural, first), self._first(plural, last))

    def of_workload(self, plural: str, workload: int) -> range:
        """The numbers of the objects of a workload."""
        return range(self._first(plural, workload), self._first(plural, workload + 1))

    def _first(self, plural: str, workload: int) -> int:
        match plural:
            case "pods" | "changepods":
                return self._shape.first_pod(workload)
            case "replicasets":
                return workload * self._shape.revisions
            case _:
                return workload

    def _workload(self, plural: str, number: int) -> tuple[int, int]:
        """The workload of an object, and the number of the object in it."""
        match plural:
            case "pods" | "changepods":
                return self._shape.deployment_of(number)
            case "replicasets":
                return divmod(number, self._shape.revisions)
            case "podunavailablebudgets":
                return number * (self._shape.deployments // self._shape.budgets), 0
            case _:
                return number, 0

    def maker(self, plural: str, *, metadata_only: bool) -> Callable[[int], bytes]:
        if plural == "opsconfiginfoes":
            return self._setting
        if not self.counts[plural]:
            return lambda _: b""
        count, known = self.counts[plural], -1
        fields: dict[bytes, bytes] = {}
        template = b""

        def make(number: int) -> bytes:
            nonlocal known, fields, template
            if number >= count:
                return self._made_fat(plural, metadata_only, number)
            workload, own = self._workload(plural, number)
            if workload != known:
                known = workload
                fields = self._fields(workload, self._versions[workload % len(self._versions)])
                template = self._template(plural, workload, metadata_only=metadata_only)
            return template % (fields | self._own(plural, workload, own, number))

        return make

    def _template(self, plural: str, workload: int, *, metadata_only: bool = False) -> bytes:
        replicas = self._shape.replicas(min(workload, self._shape.deployments - 1))
        key = plural, replicas, metadata_only
        if key not in self._encoded:
            whole = templates(replicas)[plural]
            metadata = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": whole["metadata"]}
            self._encoded[key] = _encoded(metadata if metadata_only else whole)
        return self._encoded[key]

    def _made_fat(self, plural: str, metadata_only: bool, number: int) -> bytes:
        fields = self._fields(number, b"f" * 32)
        fields |= self._own(plural, number, 0, number)
        fields |= {b"namespace": b"ungoverned", b"annotation": b"a" * 256_000}
        return self._template(plural, number, metadata_only=metadata_only) % fields

    def _fields(self, workload: int, version: bytes) -> dict[bytes, bytes]:
        name = b"checkout-frontend-%05d" % workload
        current = self._shape.revisions - 1
        return {
            b"namespace": b"team-%02d" % self.namespace(workload),
            b"workload": name,
            b"workload_uid": _uid(b"d0", workload),
            b"version": version,
            b"of_set": version,
            b"release": names.change_workload_name("", name.decode(), version.decode()).encode(),
            b"release_uid": _uid(b"c0", workload),
            b"set": b"%s-%s" % (name, _hash(workload, current)),
            b"set_uid": _uid(b"50", workload * self._shape.revisions + current),
            b"old_uid": _uid(b"50", workload * self._shape.revisions + current - 1),
            b"hash": _hash(workload, current),
            b"number": b"%d" % workload,
            b"rv": b"%d" % (100_000_000 + workload),
            b"uid": _uid(b"a0", workload),
            b"annotation": b"a" * 1000,
            b"own": name,
            **_times(workload),
        }

    def namespace(self, workload: int) -> int:
        """The number of the namespace of a workload."""
        return workload // max(1, self._shape.deployments // self._shape.namespaces) % self._shape.namespaces

    def _pod(self, workload: int, number: int) -> bytes:
        current = self._shape.revisions - 1
        return b"checkout-frontend-%05d-%s-%05x" % (workload, _hash(workload, current), 0x10000 + number * 7919)

    def _own(self, plural: str, workload: int, own: int, number: int) -> dict[bytes, bytes]:
        found = {b"rv": b"%d" % (100_000_000 + number * 7 % 800_000_000), b"index": b"%d" % (own + 1)}
        match plural:
            case "namespaces":
                found |= {b"own": b"team-%02d" % workload, b"uid": _uid(b"e0", workload)}
            case "nodes":
                found |= {b"own": b"node-%03d" % workload, b"uid": _uid(b"b0", workload)}
            case "deployments":
                found |= {b"uid": _uid(b"d0", workload)}
            case "podunavailablebudgets":
                found |= {b"uid": _uid(b"e1", number)}
            case "changeworkloads":
                found |= {b"uid": _uid(b"c0", workload)}
                for each, pod in enumerate(self.of_workload("pods", workload)[:LISTED]):
                    found |= {b"pod%d" % each: self._pod(workload, each), b"pod_uid%d" % each: _uid(b"90", pod)}
            case "replicasets":
                hashed = _hash(workload, own)
                found |= {b"own": b"checkout-frontend-%05d-%s" % (workload, hashed), b"hash": hashed}
                current = own == self._shape.revisions - 1
                found[b"replicas"] = b"%d" % (self._shape.replicas(workload) if current else 0)
                found |= {b"uid": _uid(b"50", number)}
                if own < self._shape.revisions - 1:
                    found[b"of_set"] = _digest(workload, own)
            case "pods" | "changepods":
                found |= {b"own": self._pod(workload, own), b"pod_uid": _uid(b"90", number)}
                found |= {b"uid": _uid(b"90" if plural == "pods" else b"f0", number)}
                found |= {
                    b"node": b"node-%03d" % (number * 31 % self._shape.nodes),
                    b"ip": b"10.%d.%d.%d" % _address(number),
                }
            case _:
                pass
        return found

    def _setting(self, number: int) -> bytes:
        return msgspec.json.encode(setting(list(DEFAULTS)[number]))


def _encoded(template: Mapping[str, Any]) -> bytes:
    """The template as JSON, with placeholders for numbers too."""
    return re.sub(rb'"%\((unix[0-9]*|replicas)\)s"', rb"%(\1)s", json.dumps(template).encode())


def _times(workload: int) -> dict[bytes, bytes]:
    """Times of the release of a workload: creation, success, settled."""
    found = {}
    for later in (0, 30, 150):
        at = RELEASED + workload * 7919 % _SPREAD + later
        found[b"unix%d" % later] = b"%d" % at
        found[b"time%d" % later] = rfc3339(at).encode()
        found[b"plain%d" % later] = plain_time(at).encode()
    found[b"mark"] = found[b"unix30"]
    return found


def setting(name: str, **changes: object) -> OpsConfigInfo:
    """A setting with the condition Accepted."""
    metadata = ObjectMeta(
        name=name, namespace=names.SYSTEM_NAMESPACE, uid=f"setting-{name}", resource_version="10", generation=1,
        creation_timestamp=CREATED,
    )  # fmt: skip
    spec = msgspec.structs.replace(DEFAULTS[name], **changes)
    status = OpsConfigInfoStatus(
        enable=spec.enable,
        content=spec.content,
        conditions=(condition(ConditionType.ACCEPTED, "Valid", "the setting is in effect"),),
        observed_generation=1,
    )
    return OpsConfigInfo(metadata=metadata, spec=spec, status=status)


def namespace(number: int, *, governed: bool = True, **annotations: str) -> dict[str, Any]:
    name = f"team-{number:02d}"
    own = {labels.GOVERNED: labels.GOVERNED_VALUE} if governed else {}
    metadata = {
        "name": name,
        "uid": _uid(b"e0", number).decode(),
        "labels": own | {"kubernetes.io/metadata.name": name},
    }
    return {"metadata": metadata | {"creationTimestamp": CREATED, "annotations": annotations}}


def _uid(prefix: bytes, number: int) -> bytes:
    """A uid that looks random, so that strings and hashes behave as with real uids."""
    mixed = (number * 0x9E3779B97F4A7C15 + 0x1234567) & (2**64 - 1)
    digits = b"%016x" % mixed
    return b"%s%06x-%s-4%s-8%s-%012x" % (prefix, number & 0xFFFFFF, digits[:4], digits[4:7], digits[7:10], mixed >> 16)


def _hash(workload: int, revision: int) -> bytes:
    return b"%010x" % ((workload * 31 + revision) * 2654435761 % 2**40)


def _digest(workload: int, revision: int) -> bytes:
    return b"%032x" % ((workload * 31 + revision) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)


def _address(number: int) -> tuple[int, int, int]:
    return number >> 16 & 255, number >> 8 & 255, number & 255
