"""What commands print with `-o json` and `-o yaml`, from the types."""

from collections.abc import Iterator

from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, POD_DELETION_FLOW_CONTROLS, RELEASE_FREEZES
from altershield.views.budgets.documents import Budget, BudgetList
from altershield.views.document import VERSION, Document
from altershield.views.gates.documents import GateList, GateTimeList, ReleaseAnswerList
from altershield.views.protection import ProtectedObjectList
from altershield.views.why.model import ReleaseExplanation
from altershield.views.why.refusal import PodExplanation
from command.check.result import InstallationCheck
from command.notify import NotificationTestList
from command.policy.documents import PolicyCheckList
from command.report import OutcomeReport
from docs.pages.markdown import GENERATED, code_list, table
from docs.pages.schemas import Schema, schema

DOCUMENTS: dict[type[Document], tuple[str, ...]] = {
    ReleaseExplanation: ("why TYPE/NAME",),
    PodExplanation: ("why pod/NAME",),
    GateList: ("gates",),
    ReleaseAnswerList: ("gates TYPE/NAME", "gates -f FILE", "wait TYPE/NAME --for=open"),
    GateTimeList: ("calendar",),
    BudgetList: ("budgets",),
    Budget: ("budgets NAME",),
    ProtectedObjectList: ("protected",),
    OutcomeReport: ("report",),
    PolicyCheckList: ("policy check -f FILE",),
    NotificationTestList: ("notify test -f FILE",),
    InstallationCheck: ("check",),
}
"""The documents, and the commands that print them."""

_CHANGE_WORKLOAD = f"a [{CHANGE_WORKLOADS.kind}](kinds.md#changeworkload)"
OBJECTS: dict[tuple[str, ...], str] = {
    ("status", "wait TYPE/NAME"): "a `List` of [ChangeWorkloads](kinds.md#changeworkload)",
    ("approve", "resume", "repair", "retry", "rollback", "promote", "hold"): _CHANGE_WORKLOAD,
    ("verdict",): f"a [{CHANGE_PODS.kind}](kinds.md#changepod)",
    ("history",): "a `List` of ControllerRevisions (`apps/v1`), the newest release first",
    ("history --version VERSION",): "a pod template (`PodTemplateSpec` of Kubernetes)",
    ("freeze", "unfreeze"): f"a [{RELEASE_FREEZES.kind}](kinds.md#releasefreeze)",
    ("override",): "a [ReleaseOverride](kinds.md#releaseoverride)",
    ("breaker status", "breaker open", "breaker reset"): (
        f"a [{POD_DELETION_FLOW_CONTROLS.kind}](kinds.md#poddeletionflowcontrol); of all, a `List`"
    ),
    ("protect", "unprotect"): "the objects that are named; of several, a `List`",
}
"""The commands that print objects of the Kubernetes API, and which."""

_HEAD = f"""\
# What commands print for programs

{GENERATED}

With `-o json` or `-o yaml`, a command prints one document on stdout; warnings, errors and progress go to stderr. The
exit code is the same as without the option. The web console reads the same values.

Documents have the `apiVersion` `{VERSION}` and a `kind`, but they are no objects of the
cluster. **Within a version, fields are added; none is changed or removed.** So ignore fields that you do not know. All
fields of a document are always there; what is not known or does not apply is `null`, or an empty text or list. Times
are in UTC, as in Kubernetes.

"""

_MIDDLE = """
The schemas are JSON Schema (draft 2020-12), and allow no other fields: they are those of this release. In Python:

```python
import json, subprocess, jsonschema

shown = subprocess.run(["altershield", "why", "deploy/web", "-o", "json"], capture_output=True)
with open("ReleaseExplanation.json") as schema:
    jsonschema.validate(json.loads(shown.stdout), json.load(schema))
```

Other commands print objects of the Kubernetes API as they are in the cluster. Their schemas are those of their
CustomResourceDefinitions and of Kubernetes:

"""


def page() -> str:
    kinds = table(
        ("command", "prints", "schema"),
        [
            (_commands(commands), f"[{each.__name__}](#{each.__name__.lower()})", _link(each))
            for each, commands in DOCUMENTS.items()
        ],
    )
    objects = table(("command", "prints"), [(_commands(commands), what) for commands, what in OBJECTS.items()])
    return "\n".join([_HEAD.rstrip("\n") + "\n", kinds + _MIDDLE.rstrip("\n") + "\n", objects, *map(_kind, DOCUMENTS)])


def _commands(commands: tuple[str, ...]) -> str:
    return code_list(f"altershield {each}" for each in commands)


def _link(document: type[Document]) -> str:
    return f"[{document.__name__}.json](views/{document.__name__}.json)"


def _kind(document: type[Document]) -> str:
    own = schema(document)
    rows = list(_fields(own, own.get("$defs", {})))
    return f"## {document.__name__}\n\n{own['description']}\n\n" + table(("field", "type", "meaning"), rows)


def _fields(own: Schema, parts: Schema, path: str = "") -> Iterator[tuple[str, str, str]]:
    for name, field in own["properties"].items():
        if not path and name in ("apiVersion", "kind"):
            continue
        options = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
        known = options[0]
        below = known.get("items", known)
        part = parts.get(below.get("$ref", "").rpartition("/")[2], {})
        here = f"{path}{name}{'[]' if 'items' in known else ''}"
        null = " or null" if len(options) < len(field.get("anyOf", [field])) else ""
        yield f"`{here}`", f"{_type(known, part)}{null}", field.get("description", "")
        if "properties" in part:
            yield from _fields(part, parts, f"{here}.")


def _type(field: Schema, part: Schema) -> str:
    if "items" in field:
        return "list"
    if "enum" in part:
        return ", ".join(f"`{each}`" for each in part["enum"])
    if "properties" in part:
        return "object"
    return "time" if field.get("format") == "date-time" else str(field["type"])
