"""Releases begin only while no gate is closed: freezes, on a cluster with a gatekeeper."""

import json
from pathlib import Path

from altershield.api.annotations import ROLLOUT
from altershield.api.resources import API_VERSION
from command.gates.command import EXIT_CLOSED
from command.status import EXIT_UNDER_WAY
from tests.e2e.gates import USER, freeze, known
from tests.e2e.sleep import VERSION, release, sleep
from tests.support.kubectl import Kubectl
from tests.support.processes import Run


def test_a_freeze_denies_releases_until_a_person_ends_it_and_going_back_is_always_possible(kubectl: Kubectl) -> None:
    first = release(kubectl, sleep(replicas=1))
    second = release(kubectl, sleep(replicas=1, image="second"))
    kubectl.apply(freeze())
    third = sleep(replicas=1, image="third")
    text = known(kubectl, third)
    assert "deployment sleep may not be released now: ReleaseFreeze" in text
    assert "no release may begin: incident 7" in text
    assert f"altershield gates -n {kubectl.namespace} deployment/sleep" in text
    kubectl("scale", "deployment/sleep", "--replicas=2")
    kubectl("rollout", "restart", "deployment/sleep")
    assert "may not be released now" in kubectl.run("set", "image", "deployment/sleep", "sleep=third").stderr
    kubectl.apply(sleep("created", replicas=1))
    kubectl.wait("releasefreeze/incident", "condition=Accepted")

    kubectl("delete", "releasefreeze", "incident")
    known(kubectl, third, closed=False)
    kubectl.apply(freeze("again"))
    known(kubectl, third)
    end = json.dumps({"spec": {"until": "2026-01-01T00:00:00Z"}})
    refused = kubectl.run("patch", "releasefreeze", "again", "--type=merge", "-p", end)
    assert "has to write spec.endedBy, your user name: kubernetes-admin" in refused.stderr
    kubectl("patch", "releasefreeze", "again", "--type=merge", "-p", end.replace("}}", f', "endedBy": "{USER}"}}}}'))
    known(kubectl, third, closed=False)
    assert kubectl.labels("deployment", "sleep")[VERSION] not in (first, second)


def test_going_back_passes_a_freeze(kubectl: Kubectl) -> None:
    first = release(kubectl, sleep(replicas=1))
    release(kubectl, sleep(replicas=1, image="second"))
    kubectl.apply(freeze())
    known(kubectl, sleep(replicas=1, image="third"))
    kubectl("rollout", "undo", "deployment/sleep")
    assert kubectl.labels("deployment", "sleep")[VERSION] == first
    assert ROLLOUT not in kubectl.json("deployment", "sleep")["metadata"].get("annotations", {})
    assert known(kubectl, sleep(replicas=1, image="second")), "from this version somebody went back"


def test_nobody_freezes_in_the_name_of_another_user_and_only_the_end_changes(kubectl: Kubectl) -> None:
    for spec in ({"requestedBy": "eve"}, {"requestedBy": ""}):
        refused = kubectl.run("apply", "-f", "-", stdin=freeze(**spec)).stderr
        assert "spec.requestedBy has to be your user name: kubernetes-admin" in refused
    kubectl.apply(freeze())
    refused = kubectl.run("apply", "-f", "-", stdin=freeze(reason="another one")).stderr
    assert "only until and endedBy of a ReleaseFreeze may change" in refused
    status = json.dumps({"status": {"observedGeneration": 7}})
    refused = kubectl.run("patch", "releasefreeze", "incident", "--subresource=status", "--type=merge", "-p", status)
    assert "only AlterShield writes the status of releasefreezes" in refused.stderr
    for wrong in ("tomorrow", "2026-01-01"):
        assert "spec.until" in kubectl.run("apply", "-f", "-", stdin=freeze("other", until=wrong)).stderr


def test_people_freeze_and_unfreeze_and_ask_whether_they_may_release(
    kubectl: Kubectl, altershield: Run, tmp_path: Path
) -> None:
    release(kubectl, sleep(replicas=1))
    assert altershield("gates").stdout == "No release gates found.\n"
    made = altershield("freeze", "sale", "--reason", "sale week", "--until", "2h").stdout
    assert f"ReleaseFreeze {kubectl.namespace}/sale: no release may begin in the namespace {kubectl.namespace}" in made
    third = sleep(replicas=1, image="third")
    file = tmp_path / "third.json"
    file.write_text(third)
    known(kubectl, third)
    shown = altershield("gates", "deploy/sleep", code=EXIT_CLOSED).stdout
    assert "deployment/sleep may not be released now:" in shown
    assert "It may be released from 20" in shown
    assert "sale week" in shown.splitlines()[-1]
    found = json.loads(altershield("gates", "sleep", "-o", "json", code=EXIT_CLOSED).stdout)["items"][0]
    assert (found["closed"][0]["namespace"], found["closed"][0]["name"]) == (kubectl.namespace, "sale")
    assert found["opensAt"] > "2026"
    assert "may not be released" in altershield("gates", "-f", str(file), code=EXIT_CLOSED).stdout
    explained = altershield("why", "deploy/sleep").stdout
    assert f"Gates:     ReleaseFreeze {kubectl.namespace}/sale: no release may begin: sale week; since" in explained
    assert f"altershield wait deployment/sleep -n {kubectl.namespace} --for=open" in explained
    listed = json.loads(altershield("gates", "-o", "json", code=EXIT_CLOSED).stdout)["items"]
    assert [(each["name"], each["open"], each["effect"]) for each in listed] == [("sale", False, "Freeze")]
    assert "sale week" in altershield("calendar").stdout
    altershield("wait", "deploy/sleep", "--for=open", "--timeout=1s", code=EXIT_UNDER_WAY)
    altershield("unfreeze", "sale")
    altershield("wait", "deploy/sleep", "--for=open", "--timeout=60s")
    assert altershield("gates", "deploy/sleep").stdout.startswith("deployment/sleep may be released now.")
    ended = kubectl.json("releasefreeze", "sale")["spec"]
    assert (ended["requestedBy"], ended["endedBy"]) == (USER, USER)
    assert "ended at" in altershield("unfreeze", "sale").stdout
    assert "say why with --reason" in altershield("freeze", code=2).stderr
    kubectl("delete", "releasefreeze", "sale")


def test_a_window_denies_at_its_times_by_name_and_zone(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=1))
    every_day = {"days": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]}
    spec = {
        "type": "Deny",
        "timeZone": "Asia/Shanghai",
        "schedules": [{"weekly": every_day}],
        "reason": "no releases at weekends",
    }
    window = {"apiVersion": API_VERSION, "kind": "ReleaseWindow", "metadata": {"name": "weekend"}, "spec": spec}
    kubectl.apply(json.dumps(window))
    kubectl.wait("releasewindow/weekend", "condition=Accepted")
    text = known(kubectl, sleep(replicas=1, image="second"))
    assert f"ReleaseWindow {kubectl.namespace}/weekend: no release may begin in these times: no releases" in text
    assert "+08:00 (" in text
    kubectl.apply(json.dumps({**window, "spec": {**spec, "mode": "warn"}}))
    known(kubectl, sleep(replicas=1, image="second"), closed=False)
    assert "with mode enforce: ReleaseWindow" in kubectl.run("set", "image", "deploy/sleep", "sleep=second").stderr
