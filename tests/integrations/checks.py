"""Runs the health checks of Argo CD and Flux as these tools do."""

import cel
import yaml
from lupa import lua51

from tests.integrations.objects import FOLDER, Json

SCRIPTS: dict[str, str] = yaml.safe_load((FOLDER / "argocd" / "argocd-cm.yaml").read_text())["data"]
PREFIX = "resource.customizations.health."

EXPRESSIONS: dict[str, Json] = {
    each["kind"]: each
    for each in yaml.safe_load((FOLDER / "flux" / "kustomization.yaml").read_text())["spec"]["healthCheckExprs"]
}


def health(obj: Json) -> tuple[str, str]:
    """The health of an object and the message, as Argo CD computes them: Lua 5.1 with base and table libraries only."""
    lua = lua51.LuaRuntime(register_eval=False, register_builtins=False)
    for library in ("io", "os", "package", "debug", "string", "math", "require"):
        lua.globals()[library] = None
    group, _, _ = obj["apiVersion"].rpartition("/")
    lua.globals().obj = lua.table_from(obj, recursive=True)
    found = lua.execute(SCRIPTS[f"{PREFIX}{group}_{obj['kind']}"])
    return found.status, found.message or ""


def flux(obj: Json) -> str:
    """The status that Flux computes (RFC 0009): an older status is in progress; then the first expression that is true.
    Flux tries again after an error."""
    status = obj.get("status", {})
    if "observedGeneration" in status and status["observedGeneration"] != obj["metadata"]["generation"]:
        return "InProgress"
    for name in ("inProgress", "failed", "current"):
        try:
            found = cel.evaluate(EXPRESSIONS[obj["kind"]][name], obj)
        except (RuntimeError, ValueError, KeyError):
            return "InProgress"
        assert isinstance(found, bool)
        if found:
            return name[0].upper() + name[1:]
    return "InProgress"
