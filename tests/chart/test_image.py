"""The image's build steps, carried out in an empty directory instead of a container: no engine is needed for that."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = (
    ["python", "-m", "gatekeeper", "--help"],
    ["python", "-m", "reconciler", "--help"],
    ["python", "-m", "certgen", "run", "--help"],
    ["python", "-m", "altershield", "check", "--help"],
    ["altershield", "--help"],
)


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, continued lines joined."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())]


def is_sent(path: str) -> bool:
    """Whether the build gets this file, by .dockerignore's rules as far as they are used."""
    sent = True
    for rule in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = rule.removeprefix("!")
        parts = path.split("/")
        if pattern.startswith("**/"):
            matched = any(fnmatch.fnmatch(part, pattern.removeprefix("**/")) for part in parts)
        else:
            matched = bool(rule) and not rule.startswith("#") and fnmatch.fnmatch(parts[0], pattern)
        sent = rule.startswith("!") if matched else sent
    return sent


@pytest.mark.timeout(300)
def test_the_build_steps_give_working_commands(tmp_path: Path) -> None:
    source, target = tmp_path / "src", tmp_path / "altershield"
    source.mkdir()
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            *files, where = rest.split()
            for file in files:
                copy(ROOT / file, source / where)
        if name == "RUN":
            script = rest.replace("/opt/altershield", str(target))
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            done = subprocess.run(
                ["/bin/sh", "-euc", script],
                cwd=source,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    for command in COMMANDS:
        done = subprocess.run(
            [str(target / "bin" / command[0]), *command[1:]],
            cwd=tmp_path,
            env={"PATH": f"{target}/bin", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout


def copy(origin: Path, where: Path) -> None:
    """As COPY does: a directory's content, or a file into a directory."""
    if origin.is_dir():
        shutil.copytree(origin, where, dirs_exist_ok=True, ignore=unsent)
    elif is_sent(origin.name):
        shutil.copy(origin, where)


def unsent(directory: str, names: list[str]) -> set[str]:
    relative = Path(directory).relative_to(ROOT)
    return {name for name in names if not is_sent(str(relative / name))}


def test_the_image_runs_as_nobody_in_particular() -> None:
    final = instructions()[[name for name, _ in instructions()].index("FROM", 1) :]
    (user,) = [rest for name, rest in final if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert [rest.split()[0] for name, rest in final if name == "COPY"] == ["--from=build"]


def test_the_build_is_sent_nothing_but_the_packages() -> None:
    assert is_sent("pyproject.toml")
    assert is_sent("altershield/api/kinds.py")
    for path in (".git/config", ".venv/bin/python", "tests/conftest.py", "kubeconfig", "certgen/__pycache__/x.pyc"):
        assert not is_sent(path)
