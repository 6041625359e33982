"""The record of each order that is open on an AlterShield server: a ConfigMap in the system namespace.

A ChangeWorkload is deleted with its workload or namespace, and is not watched any more when its namespace is not
governed any more. The record is left, so the reconciler can still close the order, also after a restart and after an
outage of the server. A finalizer on the ChangeWorkload would block the deletion of namespaces while the server or
AlterShield is down, and would keep the name of the ChangeWorkload from a workload that is created again.

The record is created before the order, and deleted after the order was closed.
"""

from typing import Any

import msgspec

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload
from altershield.workloads.meta import Flat, packed, packed_version
from kube_base.resources import CONFIG_MAPS
from reconciler.cluster.orders import order_id


class OpenOrder(Flat, frozen=True, gc=False):
    """The record of an order."""

    order: str
    """The id of the order."""
    release: tuple[str, str]
    """Namespace and name of the ChangeWorkload."""
    release_uid: str

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""


class _Data(msgspec.Struct, rename="camel"):
    order: str
    namespace: str
    change_workload: str
    uid: str


class _Wire(msgspec.Struct):
    metadata: _Metadata
    data: _Data


def read(content: bytes | msgspec.Raw) -> OpenOrder:
    """The record in a ConfigMap in JSON. msgspec.DecodeError if it is none."""
    wire = msgspec.json.decode(content, type=_Wire)
    metadata, data = wire.metadata, wire.data
    return OpenOrder(
        metadata.namespace,
        metadata.name,
        packed(metadata.uid),
        packed_version(metadata.resource_version) if metadata.resource_version else "",
        data.order,
        (data.namespace, data.change_workload),
        data.uid,
    )


def record_name(release: ChangeWorkload) -> str:
    """The name of the record of the order of a release."""
    return f"altershield-order-{release.metadata.uid}-{release.spec.workload_generation}"


def manifest(release: ChangeWorkload, namespace: str) -> dict[str, Any]:
    """The record of the order of a release, in the system namespace. `altershield uninstall` finds it by its labels."""
    metadata = release.metadata
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": record_name(release),
            "namespace": namespace,
            "labels": {
                labels.ORDER: labels.ORDER_OPEN,
                "app.kubernetes.io/part-of": "altershield",
                "app.kubernetes.io/component": "reconciler",
            },
        },
        "data": {
            "order": order_id(release),
            "namespace": metadata.namespace,
            "changeWorkload": metadata.name,
            "uid": metadata.uid,
        },
    }
