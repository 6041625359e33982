"""Reads lock files of requirements with hashes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker
from packaging.requirements import Requirement

from supply_chain.licenses import normalized

ROOT = Path(__file__).parents[2]

PLATFORMS = {
    machine: {
        "implementation_name": "cpython",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": "3.11.16",
        "python_version": "3.11",
        "sys_platform": "linux",
    }
    for machine in ("x86_64", "aarch64")
}
"""The variables of markers on the platforms of the image."""


class Entry(NamedTuple):
    """A package in a lock file."""

    requirement: Requirement
    hashes: tuple[str, ...]


def entries(lock: Path) -> Iterator[Entry]:
    """The packages of a lock file."""
    text = re.sub(r"(?m)^ *#.*\n", "", lock.read_text()).replace("\\\n", " ")
    for line in text.splitlines():
        requirement, *hashes = line.split(" --hash=")
        yield Entry(Requirement(requirement), tuple(each.strip() for each in hashes))


def holds(marker: Marker | None, machine: str) -> bool:
    return marker is None or marker.evaluate({**PLATFORMS[machine], "extra": ""})


def locked(lock: Path, machine: str = "x86_64") -> dict[str, str]:
    """The packages that are installed on this platform, by normalized name, with their versions."""
    found = {}
    for requirement, _ in entries(lock):
        if holds(requirement.marker, machine):
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            found[normalized(requirement.name)] = pin.version
    return found
