"""The lock files contain what pyproject.toml wants, with hashes, for both platforms of the image."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from supply_chain.licenses import normalized
from tests.supply_chain.locks import PLATFORMS, ROOT, entries, holds, locked

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK, BUILD, PLUGIN = (ROOT / f"requirements{part}.lock" for part in ("", ".build", ".plugin"))
WANTED: dict[Path, list[str]] = {
    LOCK: PROJECT["project"]["dependencies"],
    BUILD: PROJECT["build-system"]["requires"],
    PLUGIN: PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["plugin"],
}

each_lock = pytest.mark.parametrize("lock", WANTED, ids=lambda path: path.name)
each_platform = pytest.mark.parametrize("machine", PLATFORMS)


@each_lock
def test_every_package_is_pinned_with_sha256_hashes(lock: Path) -> None:
    for requirement, hashes in entries(lock):
        assert re.fullmatch(r"==[\w.+!]+", str(requirement.specifier)), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), requirement


@each_lock
@each_platform
def test_lock_meets_what_pyproject_wants(lock: Path, machine: str) -> None:
    versions = locked(lock, machine)
    for text in WANTED[lock]:
        requirement = Requirement(text)
        if holds(requirement.marker, machine):
            assert requirement.specifier.contains(versions[normalized(requirement.name)]), (
                f"{lock.name} does not meet {text!r}: run `make lock`"
            )


@each_platform
def test_lock_contains_what_its_packages_need_and_nothing_else(machine: str) -> None:
    """By the metadata of the installed packages. The versions that are installed here may be others."""
    versions = locked(LOCK, machine)
    waiting, needed = [Requirement(text) for text in WANTED[LOCK]], set()
    while waiting:
        requirement = waiting.pop()
        name = normalized(requirement.name)
        if name in needed or not holds(requirement.marker, machine):
            continue
        needed.add(name)
        if name in versions and (package := distribution(name)).version == versions[name]:
            waiting += [Requirement(text) for text in package.requires or ()]
    assert needed - versions.keys() == set()
    if all(distribution(name).version == version for name, version in versions.items()):
        assert versions.keys() - needed == set()


def test_plugin_has_the_packages_of_the_image() -> None:
    assert locked(LOCK).items() <= locked(PLUGIN).items()


def test_source_of_the_build_lock_is_the_build_backend_of_the_project() -> None:
    lines = (ROOT / "requirements.build.in").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == WANTED[BUILD]


def test_locks_name_no_index_and_no_path() -> None:
    for lock in WANTED:
        text = lock.read_text()
        assert not re.search(r"(?m)^-|://|/tmp/|/home/|/work/", text)


@each_lock
def test_make_lock_runs_the_command_that_wrote_the_lock(lock: Path) -> None:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    (line,) = [line for line in makefile.splitlines() if line.endswith(f"--output-file={lock.name}")]
    (options,) = re.findall(r"(?m)^COMPILE := (.*)$", makefile)
    ran = line.replace("$(COMPILE)", options).replace("$(UPGRADE)", "").replace("--quiet", "").split()
    assert ran[1:] == ["pip", "compile", *_arguments(lock)]


@each_lock
def test_renovate_can_read_the_command_that_wrote_the_lock(lock: Path) -> None:
    """It refuses an option with a separate argument, options that it does not know, and a command without a file."""
    known = {"--universal", "--python-version", "--generate-hashes", "--output-file", "--group", "--constraint"}
    arguments = _arguments(lock)
    files = [each for each in arguments if not each.startswith("-")]
    assert files
    assert all((ROOT / each).is_file() for each in files)
    assert {each.partition("=")[0] for each in arguments if each.startswith("-")} <= known


def _arguments(lock: Path) -> list[str]:
    """The arguments of `uv pip compile` in the header of the lock."""
    (command,) = re.findall(r"(?m)^#    uv pip compile (.*)$", lock.read_text())
    return str(command).split()
