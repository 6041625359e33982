"""Outside `altershield/workloads/` no code of the product knows a kind of workload, or of its revisions, by name."""

import ast
import re
from collections import Counter
from pathlib import Path

from altershield.workloads import ADAPTERS

ROOT = Path(__file__).parents[2]
PACKAGES = ("altershield", "certgen", "gatekeeper", "reconciler")
FREE = ("altershield/workloads/", "altershield/commands/sandbox.py", "altershield/commands/demo/")
"""The adapters; the simulation of a cluster, which has these kinds; the demo, which releases one Deployment."""

ALLOWED = {
    "altershield/api/labels.py": 2,  # keys that users know: `app.kubernetes.io/deployment-name`, and Kubernetes' own
    "altershield/api/resources.py": 6,  # constants, for the adapters and the sandbox
    "altershield/commands/check.py": 1,  # tries the gate on one workload of its own
    "altershield/install/inventory.py": 2,  # takes away the objects of AlterShield itself, which runs as one
}
"""How often a file may say it."""

_NAMES = {kind for adapter in ADAPTERS for kind in (adapter.resource.kind, adapter.revisions.kind)}
_SAID = re.compile("|".join(re.sub(r"(?<=[a-z])(?=[A-Z])", "_?", name) for name in sorted(_NAMES)), re.IGNORECASE)


def test_each_kind_would_be_noticed_however_it_is_written() -> None:
    for text in ("deployment", "DEPLOYMENTS", "ReplicaSet", "replica_sets", "statefulset", "CloneSet", "DaemonSets"):
        assert _SAID.search(text)


def code_of(source: str) -> str:
    """The source without comments and docstrings, which may name kinds as examples."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_text(each)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_no_code_knows_a_kind_of_workload_by_name() -> None:
    said: Counter[str] = Counter()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            file = path.relative_to(ROOT).as_posix()
            if not file.startswith(FREE):
                said[file] += len(_SAID.findall(code_of(path.read_text())))
    assert {file: count for file, count in said.items() if count > ALLOWED.get(file, 0)} == {}
    assert {file for file in ALLOWED if not said[file]} == set(), "no longer needed"
