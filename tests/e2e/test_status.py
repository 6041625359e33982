"""`kubectl altershield status` while releases run.

Some tests call it by the real kubectl. The others call its entry point in this process, because a start of the process
takes a second of CPU time."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from altershield.api import labels
from altershield.views.selection import types
from command import completion
from command.app import PLUGIN, main
from command.shell import candidates
from command.status import EXIT_ROLLED_BACK, EXIT_SUSPENDED, EXIT_UNDER_WAY
from tests.e2e.kinds import CLONE_SET, DAEMON_SET, DEPLOYMENT, ORDERED
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import HANG, eventually
from tests.support.processes import Done, call, run

WAIT = ("--wait",)


class Plugin:
    """Runs `kubectl altershield` as a user whose context names the namespace."""

    def __init__(self, kubectl: Kubectl, directory: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.kubectl = kubectl
        self._capture = capture
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        config = kubectl.config()
        config["contexts"][0]["context"]["namespace"] = kubectl.namespace
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self.context = str(config["current-context"])
        # the command is installed beside this Python
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {**os.environ, "PATH": path, "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *arguments: str) -> Done:
        return run(["kubectl", "altershield", *arguments], environment=self.environment)

    def call(self, *arguments: str) -> Done:
        """In this process."""
        environment = {"KUBECONFIG": str(self.kubeconfig)}
        return call(main, PLUGIN, *arguments, capture=self._capture, environment=environment)

    def completed(self, *words: str) -> list[str]:
        """What the shell proposes for the last word."""
        environment = {"KUBECONFIG": str(self.kubeconfig)}
        done = call(completion.main, PLUGIN, *words, capture=self._capture, environment=environment)
        assert (done.returncode, done.stderr) == (0, "")
        *found, directive = done.stdout.splitlines()
        assert directive == ":4"
        return found

    def status(self, *arguments: str, code: int = 0) -> str:
        """Call `status`, check the exit code, and return stdout."""
        done = self.call("status", *arguments)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def rows(self, *arguments: str, code: int = 0) -> list[list[str]]:
        """The first cells of the table's rows, without the images: name, version, state, pods passed, failed,
        waiting."""
        _, *lines = self.status(*arguments, code=code).splitlines()
        return [[*line.split()[:2], *line.split()[3:7]] for line in lines]

    def objects(self, output: str) -> list[Json]:
        listed: Json = yaml.safe_load(self.status("-o", output))  # JSON is YAML, too
        assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
        return list(listed["items"])

    @contextlib.contextmanager
    def watching(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            ["kubectl", "altershield", "status", "-w", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


@pytest.fixture
def plugin(kubectl: Kubectl, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Plugin:
    if shutil.which("kubectl-altershield", path=str(Path(sys.executable).parent)) is None:
        pytest.fail("the package is not installed beside this Python: its kubectl-altershield is missing")
    return Plugin(kubectl, tmp_path, capfd)


def release(plugin: Plugin, image: str, replicas: int = 3, *, paused: bool = False) -> None:
    """Release the Deployment `web`. A paused release stays under way."""
    manifest = DEPLOYMENT.manifest("web", image, replicas=replicas, paused=paused)
    plugin.kubectl.apply(json.dumps(manifest))


def resume(plugin: Plugin) -> None:
    plugin.kubectl("rollout", "resume", "deployment", "web")


def fail(plugin: Plugin) -> None:
    found = plugin.kubectl.json("changepods", "-l", "app.kubernetes.io/deployment-name=web")["items"][0]
    result = {"pod": found["spec"]["podInfos"][0]["pod"], "verdict": "unpass", "message": "5xx after login"}
    patch = json.dumps({"status": {"podResults": [result]}})
    plugin.kubectl("patch", "changepod", found["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch)


def test_exit_code_follows_a_release_from_under_way_to_repaired(plugin: Plugin) -> None:
    release(plugin, "busybox:1", paused=True)
    plugin.status("web", code=EXIT_UNDER_WAY)
    resume(plugin)
    (row,) = plugin.rows("web", *WAIT)
    assert (row[0], row[2:]) == ("deployment.apps/web", ["Success", "3", "0", "0"])

    fail(plugin)
    eventually(lambda: labels.SUSPEND in plugin.kubectl.labels("deployment", "web"), "the suspension")
    assert "failed: web-" in (shown := plugin.status("deploy/web", *WAIT, code=EXIT_SUSPENDED))
    assert "(5xx after login)" in shown

    plugin.kubectl("label", "deployment", "web", f"{labels.IGNORED_SUSPEND}=true")
    release(plugin, "busybox:2", paused=True)
    plugin.status("web", code=EXIT_UNDER_WAY)
    resume(plugin)
    assert "Success" in plugin.status("web", *WAIT)


def test_rolled_back_release_ends_the_wait_with_its_exit_code(plugin: Plugin) -> None:
    release(plugin, "busybox:1")
    plugin.status("web", *WAIT)
    release(plugin, "nosuch:1")
    done = plugin.run("status", "deployment/web", "--wait", "--timeout=1s")
    assert done.returncode == EXIT_UNDER_WAY
    assert "error: timed out after 1s waiting for the release of deployment.apps/web: " in done.stderr
    assert "1 of 3 pods does not come up: web-" in done.stdout
    assert ": container main: " in plugin.call("why", "deployment/web").stdout
    states = sorted(row[2] for row in plugin.rows("deployment/web", *WAIT, code=EXIT_ROLLED_BACK))
    assert states == ["Failed", "Success"]


def test_namespace_is_taken_from_the_context_unless_one_is_named(plugin: Plugin) -> None:
    namespace = plugin.kubectl.namespace
    release(plugin, "busybox:1", replicas=1)
    assert [row[0] for row in plugin.rows(*WAIT)] == ["deployment.apps/web"]
    there = plugin.rows("--all", "--context", plugin.context, f"-n={namespace}")
    assert [row[0] for row in there] == ["deployment.apps/web"]
    everywhere = plugin.call("status", "-A", "--all").stdout.splitlines()
    assert everywhere[0].split()[:3] == ["NAMESPACE", "NAME", "VERSION"]
    assert [line.split()[1] for line in everywhere if line.startswith(f"{namespace} ")] == ["deployment.apps/web"]


def test_status_without_a_name_shows_what_needs_somebody_first(plugin: Plugin) -> None:
    release(plugin, "busybox:1", replicas=1)
    plugin.status("web", *WAIT)
    eventually(lambda: plugin.call("status").stdout == "", "nothing to need somebody")
    quiet = plugin.call("status")
    assert quiet.returncode == 0
    assert quiet.stderr == (
        "No workload needs somebody, and no release is under way; 1 other workload is not shown, add --all to see it\n"
    )
    fail(plugin)
    eventually(lambda: plugin.call("status").returncode == EXIT_SUSPENDED, "the suspension")
    (row,) = plugin.rows(code=EXIT_SUSPENDED)
    assert (row[0], row[2]) == ("deployment.apps/web", "Suspend")


def test_completion_knows_namespaces_workloads_and_versions(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "LIMIT", HANG)
    release(plugin, "busybox:1", replicas=1)
    plugin.status("web", *WAIT)
    version = plugin.kubectl.labels("deployment", "web")[labels.VERSION][:12]
    namespace = plugin.kubectl.namespace
    assert plugin.completed("status", "-n", namespace[:-1]) == [namespace]
    assert plugin.completed("status", "w") == ["web"]
    assert plugin.completed("why", "") == ["pod", *types(""), "web"]
    assert plugin.completed("status", "deploy", "") == ["web"]
    assert plugin.completed("wait", "deploy/") == ["deploy/web"]
    assert plugin.completed("status", "sts/") == plugin.completed("status", "nosuch/") == []
    eventually(lambda: plugin.completed("history", "web", "--version", "") == [version], "the version in the history")
    assert plugin.completed("rollback", "deploy/web", "--to", version[:3]) == [version]
    assert plugin.completed("rollback", "deploy/none", "--to", "") == []


def test_status_of_nothing_fails_and_says_why(plugin: Plugin, admin: Kubectl) -> None:
    namespace = plugin.kubectl.namespace
    nothing = f'no release found in namespace "{namespace}": nothing was released since AlterShield governs it\n'
    done = plugin.call("status")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {nothing}")
    assert "no release of daemonsets.apps found" in plugin.call("status", "ds", "--wait").stderr
    allowed = plugin.call("status", "--allow-empty", "-o", "json")
    assert (allowed.returncode, json.loads(allowed.stdout)["items"], allowed.stderr) == (0, [], nothing)
    for named in ((), ("deploy/web",), ("-o", "json")):
        elsewhere = plugin.call("status", "-n", "nowhere", *named)
        assert (elsewhere.returncode, elsewhere.stdout) == (1, "")
        assert elsewhere.stderr.startswith('error: namespace "nowhere" not found; ')
    assert plugin.call("wait", "deploy").returncode == 1
    admin("create", "namespace", f"{namespace}-free")
    try:
        assert "which AlterShield does not govern" in plugin.call("status", "-n", f"{namespace}-free").stderr
    finally:
        admin("delete", "namespace", f"{namespace}-free", "--wait=false")


def test_output_objects_equal_those_of_kubectl_get(plugin: Plugin) -> None:
    release(plugin, "busybox:1")
    name = plugin.status("web", "-o", "name", *WAIT).strip()
    assert plugin.kubectl("get", name, "-o", "name") == f"{name}\n"
    # the status may change in between: its pod lists are written after the success
    eventually(lambda: plugin.objects("json") == plugin.kubectl.json("changeworkloads")["items"], "the same as JSON")
    eventually(lambda: plugin.objects("yaml") == plugin.kubectl.json("changeworkloads")["items"], "the same as YAML")
    header, row = plugin.status("--all", "-o", "wide").splitlines()
    assert header.split() == [
        *("NAME", "VERSION", "IMAGES", "STATE", "PASSED", "FAILED", "WAITING", "AGE", "SINCE", "POLICY", "MESSAGE"),
    ]
    assert row.split()[1] == f"{name.rpartition('--x--')[2]}*"


def test_every_kind_is_accepted_by_its_short_name(plugin: Plugin) -> None:
    kinds = {"deploy": DEPLOYMENT, "sts": ORDERED, "ds": DAEMON_SET, "clone": CLONE_SET}
    if plugin.kubectl.run("get", "crd", "clonesets.apps.kruise.io").returncode != 0:
        del kinds["clone"]
    made = [kind.manifest("app", "busybox:1") for kind in kinds.values()]
    plugin.kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    names = {f"{kind.kind.lower()}.{kind.api_version.partition('/')[0]}/app" for kind in kinds.values()}
    assert {row[0] for row in plugin.rows(*(f"{short}/app" for short in kinds), *WAIT)} == names
    assert {row[0] for row in plugin.rows("app")} == names
    assert [row[0] for row in plugin.rows("sts", "app")] == ["statefulset.apps/app"]


def test_error_of_the_status_command_is_one_sentence(plugin: Plugin, admin: Kubectl) -> None:
    namespace = plugin.kubectl.namespace
    missing = plugin.run("status", "deploy/web")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == (
        f'error: deployments.apps "web" not found in namespace "{namespace}"; check the name, or set another '
        "namespace with -n\n"
    )
    admin("create", "namespace", f"{namespace}-free")
    try:
        free = Kubectl(plugin.kubectl.kubeconfig, f"{namespace}-free")
        free("create", "deployment", "web", "--image=busybox")
        ungoverned = plugin.run("status", "web", "-n", free.namespace)
        assert ungoverned.returncode == 1
        assert "has no release; to govern its namespace, run `kubectl label namespace" in ungoverned.stderr
    finally:
        admin("delete", "namespace", f"{namespace}-free", "--wait=false")


def test_watch_with_wait_shows_each_change_and_ends_with_the_release(plugin: Plugin) -> None:
    release(plugin, "busybox:1")
    with plugin.watching("web", "--wait") as watch:
        out, err = watch.communicate()
    header, *rows = out.splitlines()
    assert (watch.returncode, err) == (0, "")
    assert header.split()[0] == "NAME"
    assert [row.split()[0] for row in rows] == ["deployment.apps/web"] * len(rows)
    assert rows[-1].split()[3] == "Success"


def test_watch_continues_after_the_end_of_a_release(plugin: Plugin) -> None:
    release(plugin, "busybox:1", replicas=1)
    plugin.status(*WAIT)
    with plugin.watching("-o", "name") as watch:
        assert watch.stdout is not None
        first = watch.stdout.readline()
        release(plugin, "busybox:2", replicas=1)
        assert first.startswith("changeworkload.app.ops.cloud.alipay.com/web--x--")
        assert any(line != first for line in iter(watch.stdout.readline, ""))
        assert watch.poll() is None
