"""The models of kubernetes-asyncio: the names, types and descriptions of the built-in kinds' fields.

They are read from the text of the library's modules, one module per model, when a model is asked for. The import of the
library loads all 767 models and takes half a second, in each process that serves the API.
"""

import ast
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

_TABLE = r"^    {} = (\{{.*?\}})$"
_TYPES = re.compile(_TABLE.format("openapi_types"), re.MULTILINE | re.DOTALL)
_NAMES = re.compile(_TABLE.format("attribute_map"), re.MULTILINE | re.DOTALL)
_REQUIRED = re.compile(r"Invalid value for `(\w+)`, must not be `None`")
_GETTER = re.compile(r'^    def (\w+)\(self\):\n        ("""Gets .*?""")', re.MULTILINE | re.DOTALL)
_NO_LIMIT = "  # noqa: E501"


class ModelField(NamedTuple):
    """A field as the library knows it: its type (`str`, `list[V1Container]`, `dict(str, str)`), whether the generated
    setter refuses None, and the description in `kubectl explain`."""

    type: str
    is_required: bool
    description: str


@cache
def _files() -> Mapping[str, Path]:
    """The modules by the names of their models, in lower case."""
    library = find_spec("kubernetes_asyncio")  # this imports nothing
    if library is None or library.origin is None:
        raise ImportError("kubernetes-asyncio is not installed")
    folder = Path(library.origin).parent / "client" / "models"
    return {file.stem.replace("_", ""): file for file in folder.glob("[!_]*.py")}


def _text(model: str) -> str:
    """The text of the module of a model; empty if there is none."""
    file = _files().get(model.lower())
    text = file.read_text() if file is not None else ""
    return text if f"\nclass {model}(object):\n" in text else ""


@cache
def exists(model: str) -> bool:
    return bool(_text(model))


@cache
def types(model: str) -> Mapping[str, str]:
    """The types of a model's fields, by their JSON names. KeyError: there is no such model."""
    names = _names(model)
    found: Mapping[str, str] = _table(model, _TYPES)
    return {names[attribute]: type_ for attribute, type_ in found.items()}


@cache
def fields(model: str) -> Mapping[str, ModelField]:
    """A model's fields by their JSON names. KeyError: there is no such model."""
    names, found = _names(model), types(model)
    text = _text(model)
    required = set(_REQUIRED.findall(text))
    described = {attribute: _description(docstring) for attribute, docstring in _GETTER.findall(text)}
    return {
        name: ModelField(found[name], attribute in required, described[attribute]) for attribute, name in names.items()
    }


def _names(model: str) -> Mapping[str, str]:
    """The JSON names of a model's fields, by the names of the attributes in Python."""
    return _table(model, _NAMES)


def _table(model: str, pattern: re.Pattern[str]) -> Mapping[str, str]:
    found = pattern.search(_text(model))
    if found is None:
        raise KeyError(model)
    table: dict[str, str] = ast.literal_eval(found.group(1))
    return table


def _description(docstring: str) -> str:
    """The second paragraph of a getter's docstring; the last one describes what it returns."""
    text: str = ast.literal_eval(docstring) if "\\" in docstring else docstring[3:-3]
    paragraphs = text.replace(_NO_LIMIT, "").split("\n\n")
    return paragraphs[1].strip() if len(paragraphs) > 2 else ""
