"""The Events, from the calls in the code that raise them."""

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.pages.markdown import GENERATED, table

_ROOT = Path(__file__).parents[2]
_ROOMS = ("gatekeeper", "reconciler", "certgen")

MEANINGS = {
    "ReleaseSuspended": "A pod failed its verification. The message says which and why, and whether further releases "
    "are denied.",
    "ReleaseResumed": "The failed pods are gone, or were judged anew: releases go on.",
    "RollbackStarted": "A pod did not come up in time, or somebody asked for it: an older version is released again.",
    "RolledBack": "The older version was released. The one that failed is denied until a newer one succeeded.",
    "RollbackImpossible": "A rollback was due or asked for, but cannot be: the message says why.",
    "ReleaseSlipped": "A release was not judged by the gate (it was down, or governance was switched on in between).",
    "SettingRejected": "On an OpsConfigInfo: it is wrong and changes nothing: the message says what to correct.",
}
"""Each reason that the code has."""

_HEAD = f"""\
# Events

{GENERATED}

The reconciler raises them; `kubectl describe` shows them, and so does

```sh
kubectl get events -A --field-selector source=altershield
```

They are about Deployments, unless it says otherwise. What happens again within ten minutes raises the count of the
Event that is there. A release that succeeds raises none.

"""


def page() -> str:
    types = reasons()
    if unlike := types.keys() ^ MEANINGS.keys():
        raise LookupError(f"docs/pages/events.py and the code do not know the same Events: {', '.join(sorted(unlike))}")
    rows = [(f"`{reason}`", types[reason], meaning) for reason, meaning in MEANINGS.items()]
    return _HEAD + table(("reason", "type", "means"), rows)


def reasons() -> dict[str, str]:
    """Each reason, and its Events' type."""
    found: dict[str, str] = {}
    for room in _ROOMS:
        for path in sorted((_ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    found.update(_raised(node))
    return found


def _raised(call: ast.Call) -> Iterator[tuple[str, str]]:
    match call:
        case ast.Call(func=ast.Name(id="Announce"), args=[ast.Constant(value=str(reason)), *_]):
            warning = not any(
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                for keyword in call.keywords
                if keyword.arg == "warning"
            )
            yield reason, "Warning" if warning else "Normal"
        case ast.Call(
            func=ast.Attribute(attr="event"), args=[_, ast.Name(id=type_), ast.Constant(value=str(reason)), *_]
        ):
            yield reason, type_.capitalize()
