"""The sandbox is a separate distribution: the product does not contain it, and its commands start without it."""

import inspect
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from command.sandbox import sandbox
from kube_sandbox.cluster.settings import SimulationSettings
from tests.support.processes import Done, run

ROOT = Path(__file__).parents[4]
_WITHOUT = "import sys; sys.modules['kube_sandbox'] = None; from command import main; main()"


def without_sandbox(*arguments: str) -> Done:
    """`altershield ARGUMENTS` in a process in which the sandbox cannot be imported."""
    return run([sys.executable, "-c", _WITHOUT, *arguments])


@pytest.mark.parametrize("command", ["sandbox", "demo"])
def test_missing_sandbox_prints_how_to_install_it_and_exits_with_2(command: str) -> None:
    done = without_sandbox(command)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: the sandbox is not installed")
    assert line.endswith("run `pip install ./sandbox` in a clone of AlterShield's repository")


@pytest.mark.parametrize("command", ["sandbox", "demo", "dev", "status"])
def test_every_command_prints_its_help_without_the_sandbox(command: str) -> None:
    assert without_sandbox(command, "--help").returncode == 0


def test_missing_sandbox_is_reported_before_an_altershield_server_starts() -> None:
    done = without_sandbox("sandbox", "--altershield-server")
    assert (done.returncode, done.stderr.startswith("error: the sandbox is not installed")) == (2, True)


def test_wheel_contains_no_package_of_the_sandbox() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["packages"]["find"]["include"]
    folders = {path.parent.relative_to(ROOT) for path in ROOT.glob("*/**/__init__.py")}
    packages = {".".join(folder.parts) for folder in folders if not folder.parts[0].startswith(".")}
    chosen = {name for name in packages if any(fnmatch(name, pattern) for pattern in patterns)}
    assert {name.partition(".")[0] for name in chosen} == {
        "altershield",
        "certgen",
        "command",
        "console",
        "gatekeeper",
        "kube_base",
        "reconciler",
    }
    assert not [name for name in chosen if "kube_sandbox" in name]


def test_image_contains_no_file_of_the_sandbox() -> None:
    copied = [line.split()[1] for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    assert "altershield/" in copied
    assert not [source for source in copied if "sandbox" in source or source == "."]


def test_sandbox_command_has_the_defaults_of_the_simulation() -> None:
    renamed = {"back_off": "pull_back_off", "clone_sets": "define_clone_sets"}
    settings = SimulationSettings()
    assert settings.crash_back_off == settings.pull_back_off
    for name, parameter in inspect.signature(sandbox).parameters.items():
        if name not in ("port", "output", "kubeconfig", "user", "altershield_server", "server_callback"):
            assert parameter.default == getattr(settings, renamed.get(name, name)), name
