"""What is read from the text of the library's modules is what the library has after its import."""

import importlib
import subprocess
import sys

import pytest

from kube_sandbox.apiserver.schema import models


@pytest.fixture(scope="module")
def library() -> dict[str, type]:
    found = importlib.import_module("kubernetes_asyncio.client.models")
    return {name: value for name, value in vars(found).items() if hasattr(value, "openapi_types")}


def test_fields_have_the_names_types_and_descriptions_of_the_library(library: dict[str, type]) -> None:
    for name, model in library.items():
        attributes = model.attribute_map
        assert list(models.types(name).items()) == [
            (attributes[attribute], type_) for attribute, type_ in model.openapi_types.items()
        ]
        fields = models.fields(name)
        for attribute, json_name in attributes.items():
            getter = getattr(model, attribute)
            paragraphs = getter.__doc__.replace("  # noqa: E501", "").split("\n\n")
            described = paragraphs[1].strip() if len(paragraphs) > 2 else ""
            refuses = any("must not be `None`" in str(text) for text in getter.fset.__code__.co_consts)
            assert fields[json_name] == (models.types(name)[json_name], refuses, described), (name, json_name)


@pytest.mark.parametrize("model", ["V1Pd", "v1pod", "Configuration", "V1Pod\n", "../configuration"])
def test_unknown_model_does_not_exist(model: str) -> None:
    assert not models.exists(model)
    with pytest.raises(KeyError):
        models.types(model)


def test_sandbox_starts_without_the_libraries_that_it_does_not_need() -> None:
    program = "import sys, kube_sandbox.__main__; print({'kubernetes_asyncio', 'prompt_toolkit'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"
