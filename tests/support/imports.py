"""The imports of a file."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """The names in the imports of a file, each after its module: `kube_base.pki.Authority`."""
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*parents, node.module) if node.module else parents)
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(found)
