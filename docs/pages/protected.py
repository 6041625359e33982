"""The table of docs/protect.md: the kinds that can be protected from deletion, and what `Cascading` looks at."""

from itertools import groupby

from altershield.api.deletion_protection import Level
from altershield.api.protected_kinds import PROTECTED_KINDS, ProtectedKind
from docs.pages.markdown import table


def protected_kinds() -> str:
    """One row for the kinds with the same content."""
    ordered = sorted(PROTECTED_KINDS, key=_rank)
    rows = [
        (
            ", ".join(map(_name, kinds)),
            "yes",
            str(kinds[0].content) if kinds[0].content else "never: no other object is deleted with it, so it warns",
            _decided_by(kinds[0]),
        )
        for _, kinds in ((rank, list(members)) for rank, members in groupby(ordered, _rank))
    ]
    return table(("kind", f"`{Level.ALWAYS}`", f"`{Level.CASCADING}` refuses while", "decided by"), rows)


def _rank(kind: ProtectedKind) -> int:
    shown = [str(each.content) for each in PROTECTED_KINDS]
    return shown.index(str(kind.content))


def _name(kind: ProtectedKind) -> str:
    resource = kind.resource
    return f"{resource.kind} (`{resource.group}`)" if resource.group.endswith("kruise.io") else resource.kind


def _decided_by(kind: ProtectedKind) -> str:
    if kind.content is None or kind.content.field:
        return "the API server"
    return f"`{Level.ALWAYS}`: the API server; `{Level.CASCADING}`: the gatekeeper"
