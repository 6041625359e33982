"""Checks the licences of everything that the image installs, and prints them.

python -m supply_chain.licenses
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import NamedTuple

PRODUCT = "altershield"

ALLOWED = {
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",  # of single files, which we neither change nor copy into our own
    "PSF-2.0",
}
"""SPDX identifiers. Each permits to ship the package in an image under Apache-2.0."""

_NAMES = {
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""The SPDX identifiers of names in older metadata."""


class Licensed(NamedTuple):
    """A package and its licence."""

    name: str
    version: str
    license: str
    """An SPDX expression, or the text in the metadata if it is not a known name."""


def closure(product: str = PRODUCT) -> list[Licensed]:
    """The packages that the product needs in this environment, directly and indirectly, without itself."""
    found: dict[str, Licensed] = {}
    waiting = [product]
    while waiting:
        package = distribution(waiting.pop())
        name = normalized(package.metadata["Name"])
        if name in found:
            continue
        found[name] = Licensed(name, package.version, license_of(package))
        waiting += requirements(package)
    del found[normalized(product)]
    return sorted(found.values())


def requirements(package: Distribution) -> Iterator[str]:
    """The names of the packages that this package needs. Requirements of an extra are left out, because they are not
    needed. Requirements with a marker are left out if they are not installed, because they are for other platforms.
    PackageNotFoundError if another requirement is not installed."""
    for requirement in package.requires or ():
        wanted, _, marker = requirement.partition(";")
        match = re.match(r"[\w.-]+", wanted)
        if match is None or "extra" in marker:
            continue
        try:
            distribution(match[0])
        except PackageNotFoundError:
            if not marker:
                raise
            continue
        yield match[0]


def license_of(package: Distribution) -> str:
    """The licence: `License-Expression`, else the classifiers, else `License`. If there are several classifiers, all
    count, because they do not say whether one licence is enough."""

    def given(field: str) -> list[str]:
        return [text.strip() for text in package.metadata.get_all(field) or ()]

    if expressions := given("License-Expression"):
        return expressions[0]
    classifiers = [text for text in given("Classifier") if text.startswith("License :: OSI Approved :: ")]
    names = [text.rpartition(" :: ")[2] for text in classifiers] or given("License") or ["not given"]
    return " AND ".join(sorted(_NAMES.get(name, name) for name in names))


def is_allowed(license_: str) -> bool:
    """Whether an SPDX expression permits to ship the package. `A OR B` needs one of them, `A AND B` needs both. Any
    other text, also `A WITH B`, is not allowed."""
    tokens = re.findall(r"[()]|[^\s()]+", license_)
    allowed = _any_of(tokens)
    return allowed and not tokens


def _any_of(tokens: list[str]) -> bool:
    """Take `A OR B OR ...` from the beginning of the tokens."""
    found = _all_of(tokens)
    while tokens[:1] == ["OR"]:
        del tokens[0]
        found = _all_of(tokens) or found
    return found


def _all_of(tokens: list[str]) -> bool:
    """Take `A AND B AND ...`. AND binds more tightly than OR."""
    found = _one(tokens)
    while tokens[:1] == ["AND"]:
        del tokens[0]
        found = _one(tokens) and found
    return found


def _one(tokens: list[str]) -> bool:
    """Take an identifier, or an expression in parentheses."""
    if not tokens:
        return False
    token = tokens.pop(0)
    if token != "(":  # noqa: S105  (not a password)
        return token in ALLOWED
    found = _any_of(tokens)
    return tokens[:1] == [")"] and bool(tokens.pop(0)) and found


def normalized(name: str) -> str:
    """The name as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    packages = closure()
    for each in packages:
        print(f"{each.name} {each.version}: {each.license}")
    if refused := [each.name for each in packages if not is_allowed(each.license)]:
        sys.exit(
            f"error: ALLOWED in supply_chain/licenses.py does not have the licences of these packages: "
            f"{', '.join(refused)}; add a licence that permits to ship its package, or remove the package"
        )
