"""How the elements of lists in pod templates are named. Pure functions."""

from collections.abc import Mapping
from typing import Any

MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
"""By field of a pod template: `patchMergeKey`, or `listMapKey` where it has more fields (k8s.io/api, core/v1)."""

_DEFAULTS = {"protocol": "TCP"}


def element_name(field: str, element: Mapping[str, Any]) -> str:
    """The name of an element of the list `field`, which is one of `MERGE_KEYS`."""
    return "/".join(str(element.get(key, _DEFAULTS.get(key, ""))) for key in MERGE_KEYS[field])


def step(key: str) -> str:
    """A member of a map, as a part of a path: `.image`, or `[nvidia.com/gpu]`."""
    return f"[{key}]" if "." in key or "/" in key else f".{key}"
