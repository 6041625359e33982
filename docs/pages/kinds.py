"""The kinds, read from the CustomResourceDefinitions."""

from collections.abc import Iterator
from typing import Any

from altershield.api import names
from altershield.api.change_pod import PodState
from altershield.api.change_workload import WorkloadState
from altershield.api.resources import GROUP
from altershield.workloads import ADAPTERS
from command.install.crds import CATEGORY, crds
from docs.pages import conditions
from docs.pages.markdown import GENERATED, table

Schema = dict[str, Any]

_NAMES = table(
    ("workload", "ChangeWorkload", "ChangePods, numbers from 1"),
    [
        (adapter.resource.kind, f"`{name}`", f"`{names.change_pod_name(name, 'NUMBER')}`")
        for adapter in ADAPTERS
        for name in (names.change_workload_name(adapter.change_workload_prefix, "NAME", "VERSION"),)
    ],
)

_HEAD = f"""\
# Kinds

{GENERATED}

All kinds are in `{GROUP}/v1alpha1` and have a status subresource. All are namespaced, except for
PodDeletionFlowControl. `kubectl get {CATEGORY} -A` lists all objects. `kubectl explain` shows the texts of this page:

```console
$ kubectl explain changeworkload.spec.countThreshold
GROUP:      {GROUP}
KIND:       ChangeWorkload
VERSION:    v1alpha1

FIELD: countThreshold <integer>

DESCRIPTION:
    Pods in one batch. A batch is verified when so many pods have come up.
…
```

ChangeWorkloads and ChangePods are in the namespace of their workload, and are deleted with it. Their names:

{_NAMES}
If a name would be too long, the workload's part is cut and ends with a hash. Lists of pods have the fields of a
ChangePod's `spec.podInfos[]`. Copies of a policy have the fields of a DefensePolicy's `spec`; `spec.policy` of a
ChangeWorkload also has the policy's `namespace`, `name` and `generation`.
"""

_STATES: dict[str, dict[str, str]] = {
    "ChangeWorkload": {
        WorkloadState.INIT: "The version was released. AlterShield has not checked its pods yet.",
        WorkloadState.RUNNING: "Pods are coming up and being verified. The conditions `PodsNotUp`, `Stalled` "
        "and `NoReplicas` say why a release stays in this state.",
        WorkloadState.TIME_OUT_PRE_THRESHOLD: "A batch was not full in time and is verified as it is. The next "
        "state is `Running`.",
        WorkloadState.SUCCESS: "All pods of the release were up and had passed at the same moment. Pods that "
        "break before the release has settled still end it. The ChangeWorkloads of older versions are deleted.",
        WorkloadState.SUSPEND: "A pod failed: a person, a check or the AlterShield server gave the verdict, or "
        "the pod was overdue and the release could not be rolled back. Further releases are denied.",
        WorkloadState.ROLLBACK: "An older version is being released again. A person may write this state to ask "
        "for a rollback.",
        WorkloadState.FAILED: "The version was rolled back or replaced before the rollback, or the AlterShield "
        "server refused it. A version that was rolled back is denied until a newer one is a `Success`.",
    },
    "ChangePod": {
        PodState.INIT: "The ChangePod was just created.",
        PodState.PRE_WAIT: "AlterShield will start the checks before the batch.",
        PodState.PRE_SUBMITTED: "The checks before the batch have begun.",
        PodState.PRE_FAILED: "A check before the batch could not be started, or there is no check: the pods "
        "count as passed, and `altershield status -w` says `passed without a check`. Or the check failed: `Verified` "
        "of the ChangePod is `False`.",
        PodState.PRE_TIMEOUT: "A check before the batch had no result in time. The pods count as passed.",
        PodState.POST_WAIT: "AlterShield will start the checks after the batch.",
        PodState.POST_SUBMITTED: "The checks after the batch have begun.",
        PodState.POST_FAILED: "A check after the batch could not be started. The pods count as passed.",
        PodState.POST_TIMEOUT: "A check after the batch had no result in time. The pods count as passed.",
        PodState.POST_FINISH: "The checks after the batch have ended with a result.",
        PodState.EXECUTE_DONE: "Verification of the pods is done. `message` keeps the previous step.",
    },
}


def page() -> str:
    return "\n".join([_HEAD, *map(_kind, crds()), conditions.section()])


def _kind(crd: Schema) -> str:
    names = crd["spec"]["names"]
    version = crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    columns = [f"`{column['name']}`" for column in version["additionalPrinterColumns"]]
    short = "`, `".join([names["singular"], *names["shortNames"]])
    parts = [
        f"## {names['kind']}",
        schema["description"],
        f"`kubectl get {names['plural']}`, or `{short}`; columns, some with `-o wide` only: {', '.join(columns)}.",
        *_selectable(version),
        table(("field", "type", "meaning"), _fields(schema)),
    ]
    if states := schema["properties"]["status"]["properties"].get("status", {}).get("enum"):
        rows = [(f"`{state}`", _STATES[names["kind"]][state]) for state in states if state]
        parts.append(table(("`status.status`", "means"), rows))
    return "\n\n".join(parts)


def _selectable(version: Schema) -> Iterator[str]:
    """The sentence about the field selectors of a kind that has any."""
    if fields := version.get("selectableFields"):
        names = " and ".join(f"`{field['jsonPath'].removeprefix('.')}`" for field in fields)
        yield f"From Kubernetes 1.31 on, `--field-selector` selects by {names}. A missing field is an empty string."


def _fields(schema: Schema, path: str = "") -> Iterator[tuple[str, str, str]]:
    for name, field in schema["properties"].items():
        if not path and name not in ("spec", "status"):
            continue
        items = field.get("items", {})
        here = f"{path}{name}{'[]' if items else ''}"
        required = "" if name in schema.get("required", ()) or not path else ", optional"
        if path == "status.":
            required = ""
        yield f"`{here}`", f"{_type(field)}{required}", field.get("description", "")
        if name not in ("conditions", "podResults", "policy", "accepted") and not name.startswith("defense"):
            yield from _fields({"properties": {}} | (items or field), f"{here}.")


def _type(field: Schema) -> str:
    if "items" in field:
        return f"list, at most {field['maxItems']}"
    bounds = []
    if "maxLength" in field and "enum" not in field:
        bounds.append(f"at most {field['maxLength']} characters")
    if "minimum" in field and field["minimum"] > 0:
        bounds.append(f"from {field['minimum']}")
    default = field.get("default")
    if isinstance(default, bool):
        bounds.append(f"default `{str(default).lower()}`")
    elif isinstance(default, str | int):
        bounds.append(f"default `{default}`")
    return ", ".join([field.get("type", "integer or string"), *bounds])
