"""CREATE of `pods/eviction`: deletes a pod, unless its PodDisruptionBudget allows no disruption.

The order is that of `pkg/registry/core/pod/storage/eviction.go`. Webhooks are called for the Eviction, before the pod
is read. They are not called for the handler's own writes: the condition and the deletion of the pod. After the call of
the webhooks, no other task runs until the handler has decided and written. So it needs no retries, unlike the handler
of the real server.
"""

from kube_base.times import now
from kube_sandbox.apiserver.admission import built_in
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.context import Api, Call, Result
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http import codec, requests, responses
from kube_sandbox.apiserver.patch import apply
from kube_sandbox.apiserver.storage.store import Item, Storage
from kube_sandbox.apiserver.verbs import deletes, disruption_budgets, write_checks
from kube_sandbox.apiserver.verbs.disruption_budgets import Charge

_PODS: Storage = ("", "pods")
_BUDGETS: Storage = ("policy", "poddisruptionbudgets")
_WRITER = "kube-apiserver"
"""The field manager of the handler's write of a budget."""


async def evict(api: Api, call: Call) -> Result:
    """Admit the Eviction, then delete the pod. Raises StatusError 429 while the pod's budget allows no disruption."""
    create_options = requests.write_options("CreateOptions", call.query, call.dry_run)
    kind = ("policy", "v1", "Eviction")
    eviction = codec.decode_subresource(kind, await call.body(), call.content_type, older=("v1beta1",))
    write_checks.check_namespace(call, eviction)
    options = await _admit(api, call, eviction, create_options)
    pod = call.current(api)
    if not disruption_budgets.needs_no_budget(pod.object):
        budgets = api.store.list(*_BUDGETS, call.attributes.namespace)
        charge = disruption_budgets.charge(pod.object, budgets, now())
        if charge is not None and not options.get("dryRun"):
            _write(api, call.attributes.namespace, charge)
    deletes.check_preconditions(call.resource, pod, options)
    if not options.get("dryRun"):
        pod = _mark(api, pod)
    requests.check_delete_options(options)
    deletes.remove(api, call.resource, pod, options)
    return responses.created(), 201


async def _admit(api: Api, call: Call, eviction: Object, create_options: Object) -> Object:
    """Call the admission plugins and webhooks. Returns the DeleteOptions of the Eviction as the webhooks left it."""
    attributes = call.attributes
    attributes.operation, attributes.options, attributes.dry_run = "CREATE", create_options, bool(call.dry_run)
    attributes.obj, attributes.old = eviction, None
    built_in.admit(attributes, api.store)
    await api.webhooks.mutate(attributes)
    eviction = attributes.obj
    if eviction["metadata"].get("name", "") != attributes.name:
        raise StatusError(400, "name in URL does not match name in Eviction object")
    options = _with_dry_run(eviction, create_options.get("dryRun") or [])
    await api.webhooks.validate(attributes)
    return options


def _with_dry_run(eviction: Object, requested: list[str]) -> Object:
    """The DeleteOptions of an Eviction. The dry run of the request is added to them, in place. Raises StatusError 500
    if the Eviction has other dry-run options."""
    options: Object | None = eviction.get("deleteOptions")
    if options is not None and requested:
        present = options.setdefault("dryRun", requested) or requested
        if present != requested:
            values = f"[{' '.join(requested)}] and [{' '.join(present)}]"
            why = f"Non-matching dry-run options in request and content: {values}"
            raise StatusError(500, why, reason="")
    elif options is None and requested:
        options = {"dryRun": requested}
    return {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **(options or {})}


def _write(api: Api, namespace: str, charge: Charge) -> None:
    item = api.store.collection(_BUDGETS).items[namespace, charge.budget]
    new = {**item.copy(), "status": charge.status}
    new = apply.track_update(item.copy(), new, manager=_WRITER, subresource="status", now=now(), crd_schema=None)
    api.store.update(_BUDGETS, item, new)


def _mark(api: Api, item: Item) -> Item:
    """Set the condition DisruptionTarget of a pod. Returns the stored pod."""
    pod = item.copy()
    conditions = pod["status"].get("conditions") or []
    condition = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None, "lastTransitionTime": now()}
    condition |= {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    present = next((one for one in conditions if one["type"] == condition["type"]), None)
    if present is not None and present["status"] == condition["status"]:
        condition["lastTransitionTime"] = present["lastTransitionTime"]
    if present == condition:
        return item
    pod["status"]["conditions"] = [*(one for one in conditions if one is not present), condition]
    return api.store.update(_PODS, item, pod)
