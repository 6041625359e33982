"""The admission plugin PodResizeValidator: refuses requests that exceed what the node can give to pods.

The rules and texts are those of `plugin/pkg/admission/podresize`. Requests of init containers are ignored.
"""

from fractions import Fraction

from kube_sandbox import quantities
from kube_sandbox.apiserver.admission.built_in import forbidden
from kube_sandbox.apiserver.attributes import Attributes, Object, Reader


def check(attributes: Attributes, reader: Reader) -> None:
    """Raise StatusError 403 for a resize beyond the node's allocatable resources. The plugin runs before the
    policies and the validating webhooks."""
    pod, old = attributes.obj, attributes.old
    if (attributes.plural, attributes.subresource) != ("pods", "resize") or pod is None or old is None:
        return
    name = pod["spec"].get("nodeName")
    if not name or pod["metadata"].get("generation") == old["metadata"].get("generation"):
        return
    node = reader.get("", "nodes", name)
    if node is None:
        raise forbidden(attributes, f'node "{name}" not found')
    if missing := _missing(pod, (node.get("status") or {}).get("allocatable") or {}):
        error = forbidden(attributes, f"node didn't have enough allocatable resources: {'; '.join(missing)}")
        error.details = (error.details or {}) | {"causes": [{"reason": "NodeCapacity"}]}
        raise error


def _missing(pod: Object, allocatable: Object) -> list[str]:
    missing = []
    for name, unit in (("cpu", 1000), ("memory", 1)):
        requests = [(container.get("resources") or {}).get("requests") or {} for container in pod["spec"]["containers"]]
        wanted = sum((quantities.parse(str(request.get(name, "0"))) for request in requests), Fraction(0))
        limit = quantities.parse(str(allocatable.get(name, "0")))
        if wanted > limit:
            missing.append(f"{name}, requested: {int(wanted * unit)}, allocatable: {int(limit * unit)}")
    return missing
