"""ResourceQuotas for the number of pods: `pods` and `count/pods`.

The real server uses the usage in the quota's status, which a controller writes; this one counts the pods. Quotas with
scopes and all other limits are ignored. The texts are those of `plugin/pkg/admission/resourcequota`.
"""

from collections.abc import Sequence

from kube_sandbox import quantities
from kube_sandbox.apiserver.admission.built_in import forbidden
from kube_sandbox.apiserver.attributes import Attributes, Object, Reader

_PODS, _ALL_PODS = "pods", "count/pods"
_ENDED = ("Succeeded", "Failed")


def check(attributes: Attributes, reader: Reader) -> None:
    """Raise StatusError 403 for a new pod that exceeds a quota of its namespace. This plugin runs last."""
    if (attributes.group, attributes.plural, attributes.subresource) != ("", "pods", ""):
        return
    for quota in reader.list("", "resourcequotas", attributes.namespace):
        spec = quota.get("spec") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        if why := _excess(quota, reader.list("", "pods", attributes.namespace)):
            raise forbidden(attributes, why)


def _excess(quota: Object, pods: Sequence[Object]) -> str:
    hard = {name: value for name, value in (quota["spec"].get("hard") or {}).items() if name in (_PODS, _ALL_PODS)}
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _ENDED]
    used = {_PODS: len(running), _ALL_PODS: len(pods)}
    exceeded = sorted(name for name, value in hard.items() if used[name] + 1 > quantities.parse(str(value)))
    if not exceeded:
        return ""
    requested = ",".join(f"{name}=1" for name in exceeded)
    present = ",".join(f"{name}={used[name]}" for name in exceeded)
    limited = ",".join(f"{name}={hard[name]}" for name in exceeded)
    return f"exceeded quota: {quota['metadata']['name']}, requested: {requested}, used: {present}, limited: {limited}"
