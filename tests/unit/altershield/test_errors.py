"""The list of errors in the docstring of `altershield.errors` is complete and correct."""

import importlib
import pkgutil
import re

import altershield
import certgen
import command
import gatekeeper
import kube_base
import reconciler
from altershield import errors
from kube_base.errors import ReportedError

PACKAGES = (altershield, command, gatekeeper, reconciler, certgen, kube_base)
_NAMES = {package.__name__ for package in PACKAGES}

_LINE = re.compile(r"^(?P<indent>[│├└─ ]*)(?P<name>\w+Error)\b(?: +\((?P<module>[\w.]+)\))?")


def the_map() -> dict[str, tuple[str, str]]:
    """Parent and module of each class in the docstring. A class without a module is in the module of its parent."""
    drawn: dict[str, tuple[str, str]] = {}
    parents: list[str] = []
    for line in filter(None, map(_LINE.match, (errors.__doc__ or "").splitlines())):
        del parents[len(line["indent"]) // 4 :]
        parent = parents[-1] if parents else "Exception"
        drawn[line["name"]] = (parent, line["module"] or drawn[parent][1])
        parents.append(line["name"])
    return drawn


def test_docstring_lists_all_errors_with_their_parents_and_modules() -> None:
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    classes = [ReportedError]
    for each in classes:
        classes += each.__subclasses__()
    own = [each for each in classes if each.__module__.partition(".")[0] in _NAMES]  # the sandbox has others
    for_users = [each for each in own if not each.__name__.startswith("_")]
    assert the_map() == {each.__name__: (each.__bases__[0].__name__, each.__module__) for each in for_users}
