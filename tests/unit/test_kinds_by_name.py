"""Only the adapters in `altershield/workloads/` name kinds of workloads and of their revisions."""

import ast
import re
from collections import Counter
from pathlib import Path

from altershield.workloads import ADAPTERS

ROOT = Path(__file__).parents[2]
PACKAGES = ("altershield", "certgen", "command", "gatekeeper", "kube_base", "reconciler")
FREE = ("altershield/workloads/", "command/sandbox/", "command/demo/")
"""Folders that may name kinds: the adapters, the simulated cluster, and the demo, which releases a Deployment."""

ALLOWED = {
    "altershield/api/labels.py": 2,  # `app.kubernetes.io/deployment-name`, and a label of Kubernetes
    "altershield/api/protected_kinds.py": 16,  # the table of the kinds that can be protected from deletion
    "altershield/api/gates/overrides.py": 5,  # the kinds that an override may name; a test compares the adapters
    "altershield/api/rollout.py": 1,  # texts: only DaemonSets have steps with a nodeSelector
    "altershield/rollout/obstacles.py": 1,
    "command/policy/documents.py": 2,
    "command/policy/command.py": 1,  # an example in an error
    "command/check/objects.py": 1,  # creates one workload to check the gatekeeper
    "command/install/inventory.py": 2,  # removes the Deployment of AlterShield itself
    "altershield/releases/history.py": 2,  # the kind in which the history is kept
    "kube_base/resources.py": 18,  # constants, for the adapters and the sandbox
}
"""How many times a file may name a kind."""

_NAMES = {kind for adapter in ADAPTERS for kind in (adapter.resource.kind, adapter.revisions.kind)}
_SAID = re.compile("|".join(re.sub(r"(?<=[a-z])(?=[A-Z])", "_?", name) for name in sorted(_NAMES)), re.IGNORECASE)


def test_pattern_matches_all_spellings_of_each_kind() -> None:
    for text in ("deployment", "DEPLOYMENTS", "ReplicaSet", "replica_sets", "statefulset", "CloneSet", "DaemonSets"):
        assert _SAID.search(text)


def code_of(source: str) -> str:
    """The source without comments and docstrings, which may contain examples."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_text(each)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_only_the_allowed_files_name_kinds_of_workloads() -> None:
    said: Counter[str] = Counter()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            file = path.relative_to(ROOT).as_posix()
            if not file.startswith(FREE):
                said[file] += len(_SAID.findall(code_of(path.read_text())))
    assert {file: count for file, count in said.items() if count > ALLOWED.get(file, 0)} == {}
    assert {file for file in ALLOWED if not said[file]} == set(), "no longer needed"
