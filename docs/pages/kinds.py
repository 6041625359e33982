"""The kinds, from the CustomResourceDefinitions."""

from collections.abc import Iterator
from typing import Any

from altershield.api import kinds
from altershield.api.resources import GROUP
from altershield.install.crds import CATEGORY, crds
from docs.pages.markdown import GENERATED, documented, table
from reconciler.decisions.rollback import RollbackReason

Schema = dict[str, Any]

_HEAD = f"""\
# Kinds

{GENERATED}

All are namespaced, of `{GROUP}/v1alpha1`, and have a status subresource.
`kubectl get {CATEGORY} -A` shows all of them, `kubectl explain` what is below:

```console
$ kubectl explain changeworkload.spec.countThreshold
GROUP:      {GROUP}
KIND:       ChangeWorkload
VERSION:    v1alpha1

FIELD: countThreshold <integer>

DESCRIPTION:
    Pods in one batch: verified once so many have come up.
…
```

ChangeWorkloads and ChangePods live beside their Deployment, and end with it. A ChangeWorkload is called
`DEPLOYMENT--x--VERSION` (the Deployment's part cut and hashed where the whole would be too long), its ChangePods
`DEPLOYMENT--x--VERSION--x--NUMBER`, numbers from 1. Wherever pods are listed, they have the fields of a ChangePod's
`spec.podInfos[]`.
"""

_STATES = {
    "ChangeWorkload": {
        kinds.WorkloadState.INIT: "Released; nothing of it was looked at yet.",
        kinds.WorkloadState.RUNNING: "Its pods are coming up and being verified.",
        kinds.WorkloadState.TIME_OUT_PRE_THRESHOLD: "A batch waited too long to be full, and is verified as it is; "
        "then `Running` again.",
        kinds.WorkloadState.SUCCESS: "Every pod came up and passed. Records of older versions are deleted.",
        kinds.WorkloadState.SUSPEND: "A pod failed its verification: further releases are denied.",
        kinds.WorkloadState.ROLLBACK: "An older version is being released again.",
        kinds.WorkloadState.FAILED: "It was rolled back, and is denied until a newer version succeeded.",
    },
    "ChangePod": {
        kinds.PodState.INIT: "Just made.",
        kinds.PodState.PRE_WAIT: "The check before the batch is to be asked for.",
        kinds.PodState.PRE_SUBMITTED: "It was asked for.",
        kinds.PodState.PRE_FAILED: "It could not be asked for, as without an AlterShield server: counts as passed.",
        kinds.PodState.PRE_TIMEOUT: "It was not answered in time: counts as passed.",
        kinds.PodState.POST_WAIT: "The check after the batch is to be asked for.",
        kinds.PodState.POST_SUBMITTED: "It was asked for.",
        kinds.PodState.POST_FAILED: "It could not be asked for: counts as passed.",
        kinds.PodState.POST_TIMEOUT: "It was not answered in time: counts as passed.",
        kinds.PodState.POST_FINISH: "It was answered.",
        kinds.PodState.EXECUTE_DONE: "Done; `message` keeps the step before.",
    },
}


def page() -> str:
    return "\n".join([_HEAD, *map(_kind, crds()), _conditions()])


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
        table(("field", "type", "meaning"), _fields(schema)),
    ]
    if states := schema["properties"]["status"]["properties"].get("status", {}).get("enum"):
        rows = [(f"`{state}`", _STATES[names["kind"]][state]) for state in states if state]
        parts.append(table(("`status.status`", "means"), rows))
    return "\n\n".join(parts)


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
        if name not in ("conditions", "podResults") and not name.startswith("defense"):
            yield from _fields({"properties": {}} | (items or field), f"{here}.")


def _type(field: Schema) -> str:
    if "items" in field:
        return f"list, at most {field['maxItems']}"
    bounds = []
    if "maxLength" in field and "enum" not in field:
        bounds.append(f"at most {field['maxLength']} characters")
    if "minimum" in field and field["minimum"] > 0:
        bounds.append(f"from {field['minimum']}")
    return ", ".join([field["type"], *bounds])


def _conditions() -> str:
    rows = [(f"`{getattr(kinds.ConditionType, name)}`", text) for name, text in documented(kinds.ConditionType).items()]
    reasons = [(f"`{getattr(RollbackReason, name)}`", text) for name, text in documented(RollbackReason).items()]
    return (
        "## Conditions\n\n`status.conditions[]` have a `type`, a `status` (`True`, `False` or `Unknown`), a `reason` "
        "in one word, a `message` for people, `lastTransitionTime` and `observedGeneration`.\n\n"
        + table(("type", "of which kind, and what it means"), rows)
        + "\n"
        + table(("reason of `RolledBack`", "means"), reasons)
    )
