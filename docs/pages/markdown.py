"""The parts of the reference pages: tables, lists of names, and documented constants."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterable, Sequence
from types import ModuleType

GENERATED = "<!-- Written by `make reference` from the code; changes belong there. -->"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. Each row has as many cells as the header."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines) + "\n"


def code_list(names: Iterable[str]) -> str:
    """Names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def documented(of: ModuleType | type) -> dict[str, str]:
    """The documented constants of a module or class: their names, and the string below each."""
    tree: ast.AST = ast.parse(textwrap.dedent(inspect.getsource(of)))
    if isinstance(of, type):
        tree = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    body = getattr(tree, "body", [])
    found = {}
    for statement, below in itertools.pairwise(body):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[statement.targets[0].id] = inspect.cleandoc(text)
    return found
