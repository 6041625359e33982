"""The image's build steps run in an empty directory, without a container engine. The result then runs AlterShield's
processes and the chart's test, with the arguments of the chart."""

import base64
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import helm_python
import pytest

from supply_chain import sbom
from supply_chain.licenses import normalized
from tests.chart.pod import account, pod_of, point_webhooks_here, wait_until_ready
from tests.chart.recorder import recording
from tests.chart.release import Release
from tests.chart.rendering import RELEASE, Object, containers, flat, is_hook, rendered
from tests.supply_chain.locks import locked
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.processes import run

pytestmark = [pytest.mark.xdist_group("chart")]

ROOT = Path(__file__).parents[2]
CHECK = "altershield-check"


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, continued lines joined."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())]


def is_sent(path: str) -> bool:
    """Whether the build context contains this file. Implements only the rules that .dockerignore uses."""
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


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the built environment's commands. Nothing in it refers to this checkout."""
    directory = tmp_path_factory.mktemp("image")
    source, target = directory / "src", directory / "altershield"
    source.mkdir()
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            *files, where = rest.split()
            for file in files:
                copy(ROOT / file, source / where)
        if name == "RUN":
            script = rest.replace("/opt/", f"{directory}/")
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            environment = {**os.environ, "PATH": path}
            done = run(["/bin/sh", "-euc", script], directory=source, environment=environment)
            assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    return target / "bin"


def test_image_has_the_python_version_of_the_tests() -> None:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = f"python:{python}-slim-bookworm"
    stages = {rest.partition("@")[0] for name, rest in instructions() if name == "FROM"}
    if stages != {wanted} and "CI" not in os.environ:
        pytest.skip(f"these tests run on Python {python}, the image does not")
    assert stages == {wanted}


def test_both_stages_have_the_same_base_image_by_digest() -> None:
    (base,) = {rest.split()[0] for name, rest in instructions() if name == "FROM"}
    assert re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", base)


def test_image_installs_only_packages_with_a_hash_in_a_lock_file() -> None:
    steps = [rest for name, rest in instructions() if name == "RUN"]
    downloads = [
        part for step in steps for part in step.split("&&") if re.search(r"\bpip\b.* (install|wheel|download) ", part)
    ]
    assert len(downloads) == 4
    offline = ("--require-hashes", "--no-index", "--no-build-isolation --no-deps")
    assert [part for part in downloads if not any(option in part for option in offline)] == []


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the lock is for the Python of the image")
def test_environment_of_the_image_has_exactly_the_packages_of_the_lock(built: Path) -> None:
    assert installed(built) == locked(ROOT / "requirements.lock") | {"altershield": version("altershield")}


def test_licences_of_all_packages_of_the_image_are_allowed(built: Path) -> None:
    done = run(
        [str(built / "python"), "-m", "supply_chain.licenses"], directory=ROOT, environment={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == installed(built).keys() - {"altershield"}


def test_sbom_names_every_package_of_the_image_with_its_version_and_licence(built: Path, tmp_path: Path) -> None:
    sbom.write(built / "python", tmp_path / "sbom.json")
    found = json.loads((tmp_path / "sbom.json").read_text())
    product, components = found["metadata"]["component"], found["components"]
    listed = {normalized(each["name"]): each["version"] for each in (product, *components)}
    assert listed == installed(built)
    assert [each["name"] for each in components if not (each.get("licenses") and each.get("purl"))] == []
    (root,) = [each for each in found["dependencies"] if each["ref"] == product["bom-ref"]]
    assert {"aiohttp", "cryptography"} <= {ref.partition("==")[0] for ref in root["dependsOn"]}
    # most of the time is the validation, and these bytes are valid if they are the same
    done = run([*sbom.command(built / "python", tmp_path / "again.json"), "--no-validate"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "sbom.json").read_bytes()


def test_default_command_of_the_image_lists_its_commands(built: Path, tmp_path: Path) -> None:
    (command,) = [json.loads(rest) for name, rest in instructions() if name == "CMD"]
    done = run(command, directory=tmp_path, environment={"PATH": str(built)})
    assert done.returncode == 0, done.stderr
    assert "check" in done.stdout


@pytest.fixture
def processes(built: Path, release: Release, system: Kubectl, tmp_path: Path) -> Iterator[None]:
    """Install the release, and run the processes of its pod with the image's Python."""
    release.install()
    deployment = system.json("deployment", RELEASE)
    system("delete", "deployment", RELEASE)  # simulated nodes run no processes
    with pod_of(system, deployment, tmp_path, str(built / "python")) as pod:
        point_webhooks_here(system, pod.ports["webhook"])
        wait_until_ready(pod.ports, *containers(deployment))
        yield


@pytest.mark.e2e
def test_image_runs_the_processes_and_the_helm_test(
    processes: None, built: Path, system: Kubectl, cluster: Path, chart: helm_python.Chart, tmp_path: Path
) -> None:
    """With values for OpenShift, where the namespace sets the user of a pod, and with a registry's credentials."""
    values = {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}, "imagePullSecrets": [{"name": "registry"}]}
    *hooks, pod = sorted((obj for obj in rendered(chart, values) if is_hook(obj)), key=weight)
    credentials = json.dumps({"auths": {"registry.example.com": {"auth": "dXNlcjprZXk="}}})
    (tmp_path / "pull-secrets").mkdir()
    (tmp_path / "pull-secrets" / "registry").write_text(credentials)  # as the kubelet mounts the Secret
    inside = Kubectl(cluster, CHECK)
    try:
        for hook in (*hooks, pod):
            system("create", "-n", hook["metadata"].get("namespace", ""), "-f", "-", stdin=json.dumps(hook))
        with recording(str(cluster)) as checking:
            kubeconfig = account(system, CHECK, checking.url, tmp_path)
            (container,) = pod["spec"]["containers"]
            arguments = [
                argument.replace("=/pull-secrets", f"={tmp_path}/pull-secrets") for argument in container["args"]
            ]
            with subprocess.Popen(
                [built / "python", *container["command"][1:], *arguments, "--kubeconfig", kubeconfig],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as running:
                eventually(lambda: inside.run("get", "deployment", CHECK).returncode == 0, "the check's Deployment")
                released = inside.json("deployment", CHECK)["spec"]["template"]["spec"]
                secret = inside.json("secret", *(each["name"] for each in released["imagePullSecrets"]))
                stdout, stderr = running.communicate(timeout=240)
        assert running.returncode == 0, stderr
        steps = [line.partition(":")[0] for line in stdout.splitlines()]
        assert steps == ["admitted", "verified", "restricted", "suspended", "denied", "cleaned up"]
        for field in ("securityContext", "nodeSelector"):
            assert released[field] == pod["spec"][field]
        assert secret["type"] == "kubernetes.io/dockerconfigjson"
        assert base64.b64decode(secret["data"][".dockerconfigjson"]).decode() == credentials
        assert inside("get", "deployments,changeworkloads,changepods,secrets", "-o", "name") == ""
        asked = {(each.verb, each.group, each.resource) for each in checking.asked}
        assert asked == {verb for hook in hooks for rule in hook.get("rules", ()) for verb in flat(rule)}
    finally:
        for hook in reversed((*hooks, pod)):
            where = hook["metadata"].get("namespace", "")
            system.run("delete", "-n", where, "--ignore-not-found", "-f", "-", stdin=json.dumps(hook))


def weight(hook: Object) -> int:
    return int(hook["metadata"]["annotations"].get("helm.sh/hook-weight", "0"))


def installed(commands: Path) -> dict[str, str]:
    """The packages of the image, by normalized name, with their versions."""
    script = "import importlib.metadata as m, json; print(json.dumps([[d.name, d.version] for d in m.distributions()]))"
    done = run([str(commands / "python"), "-Ic", script], directory=commands, environment={})
    return {normalized(name): version for name, version in json.loads(done.stdout)}


def copy(origin: Path, where: Path) -> None:
    """Does what COPY does: copies the content of a directory, or a file into a directory."""
    if origin.is_dir():
        shutil.copytree(origin, where, dirs_exist_ok=True, ignore=unsent)
    elif is_sent(origin.name):
        shutil.copy(origin, where)


def unsent(directory: str, names: list[str]) -> set[str]:
    relative = Path(directory).relative_to(ROOT)
    return {name for name in names if not is_sent(str(relative / name))}


def test_image_runs_as_a_user_other_than_root_and_copies_only_from_the_build_stage() -> None:
    final = instructions()[[name for name, _ in instructions()].index("FROM", 1) :]
    (user,) = [rest for name, rest in final if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert [rest.split()[0] for name, rest in final if name == "COPY"] == ["--from=build"]


def test_build_context_contains_only_the_packages() -> None:
    assert is_sent("pyproject.toml")
    assert is_sent("altershield/api/resources.py")
    for path in (".git/config", ".venv/bin/python", "tests/conftest.py", "kubeconfig", "certgen/__pycache__/x.pyc"):
        assert not is_sent(path)
