"""The commands of the walkthrough, with the real kubectl."""

import re

from tests.e2e.sleep import (
    DEFENSE_STATUS,
    IGNORED_SUSPEND,
    SUSPEND,
    TEMPLATE_PATCH,
    VERSION,
    release,
    sleep,
    succeed,
    suspend,
)
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

REPAIR = sleep(labels={IGNORED_SUSPEND: "true"}, template_labels={"test": "1234"})


def test_settings_exist_with_their_defaults(kubectl: Kubectl) -> None:
    system = Kubectl(kubectl.kubeconfig, "altershieldoperator-system")
    lines = eventually(lambda: len(out := system("get", "opsconfiginfo").splitlines()) == 4 and out, "the settings")
    assert lines[0].split() == ["NAME", "AGE"]
    assert [line.split()[0] for line in lines[1:]] == ["blocking", "branch", "rollback"]
    blocking = system.json("opsconfiginfo", "blocking")["spec"]
    assert blocking == {"enable": True, "remark": "Enabling Blockade", "type": "isBlockingUp"}
    branch = system.json("opsconfiginfo", "branch")["spec"]
    assert branch == {"content": "10", "enable": False, "remark": "Enabling Batch Protection", "type": "isBranch"}
    rollback = system.json("opsconfiginfo", "rollback")["spec"]
    assert (rollback["type"], rollback["enable"], rollback["content"]) == ("isRollback", True, "20%")


def test_release_is_suspended_repaired_and_released_again(kubectl: Kubectl) -> None:
    version = release(kubectl)
    assert re.fullmatch(r"[0-9a-f]{32}", version)
    deployment = kubectl.json("deployment", "sleep")
    assert deployment["spec"]["template"]["metadata"]["labels"][VERSION] == version
    assert deployment["metadata"]["labels"][DEFENSE_STATUS] == "processed"

    header, *rows = kubectl("get", "changepods").splitlines()
    assert header.split() == ["NAME", "STATUS", "MESSAGE", "CREATETIME"]
    assert [row.split()[:3] for row in rows] == [
        [f"sleep--x--{version}--x--{n}", "ExecuteDone", "PreFailed"] for n in range(1, 6)
    ]
    header, row = kubectl("get", "changeworkloads").splitlines()
    assert header.split() == ["NAME", "STATUS", "CREATETIME"]
    assert row.split()[:2] == [f"sleep--x--{version}", "Success"]

    failed = suspend(kubectl, version)
    workload = kubectl.json("changeworkload", f"sleep--x--{version}")
    assert workload["status"]["defenseCheckFailPods"] == [{**failed, "verdict": "unpass", "message": "find error"}]
    assert kubectl("get", "changepods").splitlines()[1].split()[:3] == [
        f"sleep--x--{version}--x--1", "ExecuteDone", "PostFinish",
    ]  # fmt: skip
    assert kubectl.labels("deployment", "sleep")[SUSPEND].isdigit()

    release_anew = ("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH, "--type", "merge")
    tried = (*release_anew, "--dry-run=server")
    eventually(lambda: failed["pod"] in kubectl.run(*tried).stderr, "the gatekeeper to know the failed pod")
    denied = kubectl.run(*release_anew)
    assert denied.returncode != 0
    *warnings, error = denied.stderr.strip().splitlines()
    assert error == (
        "Error from server (deployment sleep is suspended): "
        'admission webhook "vdeployment.kb.io" denied the request: deployment sleep is suspended'
    )
    said = "\n".join(warnings)
    assert all(line.startswith("Warning:") for line in warnings if line)
    for part in (version, failed["pod"], "find error", IGNORED_SUSPEND, "docs/denied.md"):
        assert part in said, said

    kubectl("scale", "deployment", "sleep", "--replicas=6")
    kubectl("rollout", "status", "deployment", "sleep")

    assert "deployment.apps/sleep configured" in kubectl("apply", "-f", "-", stdin=REPAIR)
    repaired = kubectl.labels("deployment", "sleep")[VERSION]
    assert repaired != version
    succeed(kubectl, repaired)
    eventually(lambda: len(kubectl("get", "changeworkloads").splitlines()) == 2, "only the new ChangeWorkload")
    eventually(
        lambda: not ({SUSPEND, IGNORED_SUSPEND} & set(kubectl.labels("deployment", "sleep"))),
        "the labels suspend and ignored-suspend to be removed",
    )
    assert "patched" in kubectl.run("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH, "--type", "merge").stdout


def test_bad_release_is_rolled_back_and_denied_until_a_newer_release_succeeds(kubectl: Kubectl) -> None:
    good = release(kubectl)
    kubectl("set", "image", "deployment", "sleep", "sleep=busybo")
    bad = kubectl.labels("deployment", "sleep")[VERSION]
    assert bad != good
    eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == good, "the old template")
    kubectl("rollout", "status", "deployment", "sleep")
    kubectl.wait(f"changeworkload/sleep--x--{bad}", "jsonpath={.status.status}=Failed")
    image = kubectl.json("deployment", "sleep")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == "busybox"

    again = kubectl.run("set", "image", "deployment", "sleep", "sleep=busybo")
    assert again.returncode != 0
    assert "was rolled back" in again.stderr
    assert IGNORED_SUSPEND in again.stderr

    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH, "--type", "merge")
    newer = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, newer)
    eventually(
        lambda: not kubectl.exists("changeworkload", f"sleep--x--{bad}"),
        "the ChangeWorkload of the bad version to be removed",
    )
    eventually(
        lambda: kubectl.run("set", "image", "deployment", "sleep", "sleep=busybo").returncode == 0,
        "the gatekeeper to admit the version again",
    )
