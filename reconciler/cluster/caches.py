"""The informers, and the queries that controllers make on them.

Objects of ungoverned namespaces are not kept, except settings, policies of the system namespace, records of orders, and
watches whose scope has them.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from altershield.api import labels, names
from altershield.api.change_workload import ChangeWorkload
from altershield.api.namespace import Namespace
from altershield.api.ops_config import BLOCKING, Settings, effective
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.policy import DefensePolicy
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES, OPS_CONFIG_INFOS
from altershield.budget_caches.caches import BudgetCaches
from altershield.workloads import ADAPTERS, BY_KIND, nodes, pods, sets
from altershield.workloads.nodes import Node
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.access.objects import T
from kube_base.access.optional import definition_informer
from kube_base.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS, GroupKind
from kube_base.times import unix
from reconciler.cluster import batch, open_orders
from reconciler.cluster import release as projection
from reconciler.cluster.batch import Batch
from reconciler.cluster.open_orders import OpenOrder
from reconciler.cluster.ownership import WorkloadKey, is_intermediate, is_workload, workload_key
from reconciler.cluster.release import Release
from reconciler.cluster.watch import Watch

Key = tuple[str, str]
"""Namespace and name of an object."""


_OWNER = "owner"
_WORKLOAD = "workload"
_NODE = "node"
_LOST = "lost"
_CHANGE_WORKLOAD = "changeworkload"
_NAMESPACE = "namespace"
_UID = "uid"


class Caches:
    """The informers of the reconciler. `budgets` has its own ones of pods and workloads.

    Informers of kinds that a cluster may lack run only while the CustomResourceDefinition exists. `namespace_selector`:
    a label selector that governed namespaces must match in addition. `watches`: what subjects follow in addition;
    `caches[watch]` is the informer.
    """

    def __init__(
        self,
        client: Client,
        system_namespace: str,
        *,
        namespace_selector: str = "",
        watches: Sequence[Watch[Any]] = (),
    ) -> None:
        self.system_namespace = system_namespace
        governed = ",".join(filter(None, (labels.GOVERNED_SELECTOR, namespace_selector)))
        self.namespaces = Informer(client, NAMESPACES, Namespace, label_selector=governed)
        self.nodes = Informer(client, NODES, Node, read=nodes.read, resync=0)
        self.workloads: dict[GroupKind, Informer[Workload]] = {
            adapter.resource.group_kind: Informer(
                client, adapter.resource, Workload, read=adapter.read, keep=self._governs
            )
            for adapter in ADAPTERS
        }
        self.sets: dict[GroupKind, Informer[Set]] = {
            adapter.intermediate.group_kind: Informer(
                client, adapter.intermediate, Set, read=sets.read, metadata_only=True, keep=self._keeps_set, resync=0
            )
            for adapter in ADAPTERS
            if adapter.intermediate is not None
        }
        self.pods = Informer(client, PODS, Pod, read=pods.read, keep=self._keeps_pod, resync=0)
        self.releases = Informer(client, CHANGE_WORKLOADS, Release, read=projection.read, keep=self._governs)
        self.batches = Informer(client, CHANGE_PODS, Batch, read=self._read_batch, keep=self._governs, resync=0)
        self.settings = Informer(client, OPS_CONFIG_INFOS, OpsConfigInfo)
        self.policies = Informer(client, DEFENSE_POLICIES, DefensePolicy, keep=self._keeps_policy)
        self.orders = Informer(
            client,
            CONFIG_MAPS,
            OpenOrder,
            read=open_orders.read,
            namespace=system_namespace,
            label_selector=f"{labels.ORDER}={labels.ORDER_OPEN}",
            name="orders",
        )
        """The records of open orders. It runs only with an AlterShield server."""
        self._watched: dict[Watch[Any], Informer[Any]] = {
            watch: watch.informer(client, system_namespace, self._governs) for watch in watches
        }
        self.definitions = {
            adapter.resource.group_kind: definition_informer(client, adapter.crd) for adapter in ADAPTERS if adapter.crd
        }
        """By kind of workload: the CustomResourceDefinition of each kind that a cluster may lack."""
        self.budgets = BudgetCaches(
            client, self.governed, lambda namespace: not self.governed(namespace), self.definitions
        )
        """The budgets, and the pods and workloads that they count."""
        self.budgets.share_names((*self.workloads.values(), *self.sets.values(), self.pods))
        self._filling: dict[str, object] = {}
        self._index()
        self._in_effect: Settings | None = None
        self.settings.add_handler(lambda old, new: self._forget_settings())

    def _index(self) -> None:
        for workloads in self.workloads.values():
            workloads.add_index(_NAMESPACE, lambda each: (each.metadata.namespace,))
        for informer in self.sets.values():
            informer.add_index(_OWNER, lambda each: (each.owner.uid,))
        self.policies.add_index(_NAMESPACE, lambda policy: (policy.metadata.namespace,))
        self.pods.add_index(_OWNER, lambda pod: (pod.owner.uid,))
        self.pods.add_index(_LOST, lambda pod: (_LOST,) if pod.lost else ())
        self.releases.add_index(_WORKLOAD, lambda release: (_index_key(workload_key(release)),))
        self.releases.add_index(_UID, lambda release: (release.metadata.uid,))
        self.orders.add_index(_UID, lambda order: (order.release_uid,))
        self.batches.add_index(_NODE, lambda each: (each.node,) if each.node else ())
        self.batches.add_index(_CHANGE_WORKLOAD, lambda each: (sys.intern(each.release[1]),))

    def __getitem__(self, watch: Watch[T]) -> Informer[T]:
        """The informer of what a subject follows."""
        return self._watched[watch]

    @property
    def required(self) -> tuple[Informer[Any], ...]:
        """The informers that must be synced before a controller decides anything, in the order in which they are
        filled.

        Namespaces come first, because they decide which objects of the other informers are kept.
        """
        return (
            self.namespaces,
            self.settings,
            self.policies,
            *self._watched.values(),
            *(each for each in self.budgets.required if each not in self.definitions.values()),
            self.nodes,
            *self.definitions.values(),
            *(each for kind, each in self.workloads.items() if kind not in self.definitions),
            *self.sets.values(),
            self.pods,
            self.releases,
            self.batches,
        )

    @property
    def namespaced(self) -> tuple[Informer[Any], ...]:
        """The informers that keep objects of governed namespaces only.

        Workloads come last: when a workload is in the cache, the objects that belong to it are there too. Kinds that
        the cluster does not have are left out, because they cannot be listed.
        """
        workloads = (each for kind, each in self.workloads.items() if self.defined(kind))
        return (
            self.policies,
            *self.budgets.governed,
            self.releases,
            self.batches,
            self.pods,
            *self.sets.values(),
            *(informer for watch, informer in self._watched.items() if watch.scope.follows_namespaces),
            *workloads,
        )

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """All informers, except that of open orders."""
        optional = (self.workloads[kind] for kind in self.definitions)
        return (*self.required, *optional, *self.budgets.counted_informers)

    def defined(self, kind: GroupKind) -> bool:
        """Whether the cluster has this kind of workload."""
        informer = self.definitions.get(kind)
        return informer is None or len(informer) > 0

    # namespaces and settings

    def governed(self, namespace: str) -> bool:
        """Whether AlterShield acts in this namespace: it has the label and is not being deleted.

        The gatekeeper never acts in some namespaces, so the reconciler does not either.
        """
        found = self.namespaces.get("", namespace)
        return (
            found is not None
            and found.governed
            and found.metadata.deletion_timestamp is None
            and namespace not in names.never_governed(self.system_namespace)
        )

    def begin_filling(self, namespace: str) -> None:
        """The namespace has become governed, or is not governed any more: the caches do not match it yet."""
        self._filling[namespace] = object()

    def filling(self, namespace: str) -> object | None:
        """Identifies the present filling of the namespace; None if the caches match the namespace.

        Watches bring new objects of the namespace before its older objects are listed. A release that begins at that
        time would have no policy, and a batch no checks.
        """
        return self._filling.get(namespace)

    def end_filling(self, namespace: str, filling: object | None) -> None:
        """End this filling: the caches match the namespace. Another filling that has begun since goes on."""
        if self._filling.get(namespace) is filling:
            self._filling.pop(namespace, None)

    def governed_since(self, namespace: str) -> float:
        """The Unix second since which gatekeepers review releases in this namespace; infinity if it is not known.

        It is the later one of two times: when the namespace got its label, and when AlterShield was installed. The
        second one is the creation time of the setting `blocking`, which the reconciler creates when it first runs.
        """
        found = self.namespaces.get("", namespace)
        governed_at = found.metadata.governed_at if found is not None and self.governed(namespace) else None
        installed = self.settings.get(self.system_namespace, BLOCKING)
        if governed_at is None or installed is None:
            return math.inf
        return max(governed_at, unix(installed.metadata.creation_timestamp))

    def workloads_in(self, namespace: str) -> Iterator[Workload]:
        """All workloads of the namespace, of every kind."""
        for workloads in self.workloads.values():
            yield from workloads.by_index(_NAMESPACE, namespace)

    def policies_of(self, namespace: str) -> list[DefensePolicy]:
        """All DefensePolicies of the namespace."""
        return self.policies.by_index(_NAMESPACE, namespace)

    def in_effect(self) -> Settings:
        """The settings in effect, computed once per change."""
        if self._in_effect is None:
            self._in_effect = effective(self.settings.all(), self.system_namespace)
        return self._in_effect

    def _forget_settings(self) -> None:
        self._in_effect = None

    # the objects that the caches keep

    def _keeps_policy(self, policy: DefensePolicy) -> bool:
        namespace = policy.metadata.namespace
        return namespace == self.system_namespace or self.governed(namespace)

    def _governs(self, obj: Any) -> bool:
        return self.governed(obj.metadata.namespace)

    def _keeps_set(self, each: Set) -> bool:
        return is_workload(each.owner) and self.governed(each.metadata.namespace)

    def _keeps_pod(self, pod: Pod) -> bool:
        return (is_workload(pod.owner) or is_intermediate(pod.owner)) and self.governed(pod.metadata.namespace)

    def _read_batch(self, data: bytes | msgspec.Raw) -> Batch:
        """Reads a ChangePod. It shares the pod names with the cached pods, because there are as many batches
        as pods."""
        return batch.read(data, self.pods.get)

    # ownership

    def workload(self, key: WorkloadKey) -> Workload | None:
        """The workload with this key, or None."""
        informer = self.workloads.get(key.kind)
        return informer.get(key.namespace, key.name) if informer is not None else None

    def node_ready(self, node: str) -> bool:
        """Whether a pod on this node can be up: False if the node is known to be not ready, True if it is unknown."""
        found = self.nodes.get("", node)
        return found is None or found.ready

    def node_lost(self, node: str) -> bool:
        """Whether the node does not exist or is not ready."""
        found = self.nodes.get("", node)
        return found is None or not found.ready

    def node_ready_at(self, node: str) -> float:
        """Since when the node is ready, Unix seconds; 0 if it is not ready or the time is not known."""
        found = self.nodes.get("", node)
        return float(found.ready_at) if found is not None and found.ready else 0.0

    def node_labels(self) -> dict[str, Mapping[str, str]]:
        """The labels of all nodes, by name."""
        return {node.metadata.name: node.labels for node in self.nodes.all()}

    def set_of(self, pod: Pod) -> Set | None:
        """The ReplicaSet (or similar object) that controls the pod, or None."""
        informer = self.sets.get(pod.owner.group_kind)
        if informer is None:
            return None
        found = informer.get(pod.metadata.namespace, pod.owner.name)
        return found if found is not None and found.uid == pod.owner.uid else None

    def workload_of(self, pod: Pod) -> WorkloadKey | None:
        """The key of the workload that the pod's owner names, or None.

        The workload that has this key now can be another one with the same name. `owns` compares the uid.
        """
        if is_workload(pod.owner):
            return WorkloadKey(pod.owner.group_kind, pod.metadata.namespace, pod.owner.name)
        found = self.set_of(pod)
        if found is None:
            return None
        return WorkloadKey(found.owner.group_kind, found.metadata.namespace, found.owner.name)

    def owns(self, workload: Workload, pod: Pod) -> bool:
        """Whether the pod belongs to exactly this workload, by uid."""
        if pod.metadata.namespace != workload.metadata.namespace:
            return False
        if BY_KIND[workload.group_kind].intermediate is None:
            return pod.owner.uid == workload.metadata.uid
        found = self.set_of(pod)
        return found is not None and found.owner.uid == workload.metadata.uid

    def pods_of(self, workload: Workload) -> Iterator[Pod]:
        """All pods of the workload, of every version."""
        adapter, uid, namespace = BY_KIND[workload.group_kind], workload.metadata.uid, workload.metadata.namespace
        owners = [uid]
        if adapter.intermediate is not None:
            owners = [each.metadata.uid for each in self.sets_of(workload)]
        for owner in owners:
            for pod in self.pods.by_index(_OWNER, owner):
                if pod.metadata.namespace == namespace:
                    yield pod

    def lost_pods(self) -> list[Pod]:
        """The pods that a kubelet evicted or that were lost with their node, and that still exist as objects."""
        return self.pods.by_index(_LOST, _LOST)

    def pods_of_set(self, each: Set) -> list[Pod]:
        """The pods that this object controls."""
        found = self.pods.by_index(_OWNER, each.metadata.uid)
        return [pod for pod in found if pod.metadata.namespace == each.metadata.namespace]

    def informer_of(self, obj: Set) -> Informer[Set]:
        """The informer of the kind of this object. KeyError if the kind of workload has no intermediate object."""
        intermediate = BY_KIND[obj.owner.group_kind].intermediate
        if intermediate is None:
            raise KeyError(f"no informer: a {obj.owner.kind} controls its pods itself")
        return self.sets[intermediate.group_kind]

    def sets_of(self, workload: Workload) -> list[Set]:
        """The ReplicaSets (or similar objects) of the workload; empty if the workload controls its pods itself."""
        intermediate = BY_KIND[workload.group_kind].intermediate
        if intermediate is None:
            return []
        found = self.sets[intermediate.group_kind].by_index(_OWNER, workload.metadata.uid)
        return [each for each in found if each.metadata.namespace == workload.metadata.namespace]

    def releases_of(self, workload: Workload) -> list[Release]:
        """All ChangeWorkloads that name a workload of this kind and name.

        They may belong to this workload or to a deleted one of the same name. They have no owner if a workload was
        deleted with `--cascade=orphan`.
        """
        key = WorkloadKey(workload.group_kind, workload.metadata.namespace, workload.metadata.name)
        return self.releases.by_index(_WORKLOAD, _index_key(key))

    def batches_of(self, release: ChangeWorkload) -> list[Batch]:
        """The ChangePods that belong to this ChangeWorkload by their name. The ChangePods of a deleted ChangeWorkload
        of the same name are included."""
        found = self.batches.by_index(_CHANGE_WORKLOAD, release.metadata.name)
        return [each for each in found if each.metadata.namespace == release.metadata.namespace]

    def orders_of(self, release: ChangeWorkload) -> list[OpenOrder]:
        """The records of the open orders of this ChangeWorkload."""
        return self.orders.by_index(_UID, release.metadata.uid)

    def release_of_uid(self, uid: str) -> Release | None:
        """The ChangeWorkload with this uid, or None."""
        return next(iter(self.releases.by_index(_UID, uid)), None)

    def batch_of_node(self, node: str) -> Batch | None:
        """The ChangePod with this id on an AlterShield server, or None."""
        return next(iter(self.batches.by_index(_NODE, node)), None)


def _index_key(key: WorkloadKey) -> str:
    return "/".join((*key.kind, key.namespace, key.name))
