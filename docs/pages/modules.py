"""What the first sentence of their docstrings says about packages and modules, and the walks through them."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from docs.pages.markdown import GENERATED, code_list, table

ROOT = Path(__file__).parents[2]

PRODUCT = ("altershield", "kube_base", "gatekeeper", "reconciler", "certgen", "console", "command")
"""The packages of the wheel."""

_SENTENCE = re.compile(r".+?[.!?](?=\s|$)")

_PACKAGES = f"""\
# Packages

{GENERATED}

The packages of the product, by the first sentence of their docstrings. [Architecture](../architecture.md) says how they
belong together.

"""

_WALKS = f"""\
# Walks

{GENERATED}

All files that one review and one pod event enter, in the order in which they enter them first.
[Architecture](../architecture.md) says why. A *turn back* is a call into an earlier file of the list, from which the
walk goes on to another file (`tests/structure/trace.py`).
"""


def packages() -> str:
    """The page of the packages."""
    rows = ((f"`{each}/`", sentence(ROOT / each / "__init__.py")) for each in _found())
    return _PACKAGES + table(("package", "contents"), rows)


def walks(found: Mapping[str, tuple[Sequence[str], Sequence[tuple[str, str]]]]) -> str:
    """The page of the walks. `found`: by its heading, the files of a walk, and its turns back: the file that is called,
    and the file that calls it."""
    parts = [_WALKS]
    for heading, (files, turns) in found.items():
        listed = "".join(f"{number}. `{file}`: {sentence(ROOT / file)}\n" for number, file in enumerate(files, 1))
        callers: dict[str, list[str]] = {}
        for back_to, caller in sorted(turns):
            callers.setdefault(back_to, []).append(caller)
        rows = ((f"`{back_to}`", code_list(each)) for back_to, each in callers.items())
        parts += [f"\n## {heading}\n\n{listed}\n", table(("back to", "from"), rows)]
    return "".join(parts)


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    match = _SENTENCE.match(text)
    return match[0] if match else text


def _found() -> Iterator[str]:
    for root in PRODUCT:
        for path in sorted((ROOT / root).rglob("__init__.py")):
            yield path.parent.relative_to(ROOT).as_posix()
