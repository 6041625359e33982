"""Objects of AlterShield's kinds as the API server returns them, and where the files of integrations/ are."""

from pathlib import Path
from typing import Any

import yaml

from altershield.api.resources import GROUP

Json = dict[str, Any]
"""An object, or a part of one."""

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "integrations"


def condition(type_: str, status: str, reason: str = "Any", message: str = "") -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def of_kind(kind: str, *conditions: Json, generation: int = 2, **status: Any) -> Json:
    """An object whose status is about its newest spec."""
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": kind,
        "metadata": {"name": "any", "namespace": "shop", "generation": 2},
        "spec": {},
        "status": {**status, "conditions": list(conditions), "observedGeneration": generation},
    }


def crds() -> dict[str, Json]:
    """The CRDs of the chart, by kind."""
    files = (ROOT / "charts" / "altershield" / "files" / "crds").glob("*.yaml")
    found = [yaml.safe_load(file.read_text()) for file in files]
    return {each["spec"]["names"]["kind"]: each for each in found}


def schema_at(schema: Json, path: list[str]) -> Json | None:
    """The schema of the field at this path, or None if the schema has no such field."""
    for name in path:
        found = schema.get("properties", {}).get(name)
        if found is None:
            return None
        schema = found
    return schema
