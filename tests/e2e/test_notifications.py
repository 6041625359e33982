"""Notifications of `altershield dev`, and a file of receivers that changes while it runs."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.resources import API_VERSION
from tests.e2e.requests import patch_status
from tests.e2e.sleep import release, sleep, suspend
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually


class Receiver:
    """An HTTP server that keeps the path and the body of each request."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.requests.append((self.path, body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def configure(receivers: Path, receiver: Receiver, namespace: str, **own: dict[str, Any]) -> None:
    """Write the file with these receivers, which are told of this namespace only: other tests use the file too."""
    common = {"type": "slack", "namespaces": [namespace]}
    made = [{"name": name, "url": f"{receiver.url}/{name}", **common, **more} for name, more in own.items()]
    text = json.dumps({"receivers": made})
    replacement = receivers.with_name("receivers.new")
    replacement.write_text(text)
    replacement.replace(receivers)


@pytest.fixture(autouse=True)
def no_receivers(receivers: Path) -> Iterator[None]:
    """The file has no receivers after a test."""
    yield
    receivers.write_text("receivers: []")


def accepted(kubectl: Kubectl) -> dict[str, str]:
    """Status, reason and message of the condition Accepted of the policy `own`, once it describes the spec."""
    found = kubectl.json("defensepolicy", "own")
    conditions = {each["type"]: each for each in found.get("status", {}).get("conditions", [])}
    condition = conditions.get("Accepted", {})
    return condition if condition.get("observedGeneration") == found["metadata"]["generation"] else {}


def policy(kubectl: Kubectl, message: str = "the policy is in force", **spec: Any) -> str:
    """Apply the policy `own`. The message of its condition Accepted, once it ends with this text."""
    made = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "own"}, "spec": spec}
    kubectl.apply(json.dumps(made))
    return until_accepted(kubectl, message)


def until_accepted(kubectl: Kubectl, message: str) -> str:
    def met() -> str:
        found = accepted(kubectl).get("message", "")
        return found if found.endswith(message) else ""

    found = eventually(met, f"the condition Accepted with {message!r}")
    assert accepted(kubectl)["status"] == "True"
    return found


def notified(kubectl: Kubectl, count: int) -> list[str]:
    """The event and the receiver of each notification of the only release, once there are so many."""

    def stored() -> list[str]:
        (found,) = kubectl.json("changeworkloads")["items"]
        entries: list[str] = found.get("status", {}).get("notified", [])
        return entries if len(entries) == count else []

    entries = eventually(stored, f"{count} notifications to be stored")
    return sorted(f"{event} {name}" for event, _, name in (entry.split("/") for entry in entries))


def test_suspension_is_told_to_receivers_that_were_added_while_the_reconciler_runs(
    kubectl: Kubectl, receiver: Receiver, receivers: Path
) -> None:
    types = ("alertmanager", "cloudevents", "pagerduty", "slack", "teams")
    keys = {"pagerduty": {"routingKey": "0" * 32}}
    configure(receivers, receiver, kubectl.namespace, **{each: {"type": each, **keys.get(each, {})} for each in types})
    version = release(kubectl)
    suspend(kubectl, version)
    assert notified(kubectl, len(types)) == [f"suspended {each}" for each in types]
    texts = [json.dumps(body) for _, body in receiver.requests]
    assert len(texts) == len(types)
    assert all(kubectl.namespace in text and "find error" in text for text in texts)
    approved = {"verb": "Approve", "by": kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")}
    patch_status(kubectl, "changeworkload", f"sleep--x--{version}", {"request": approved})
    eventually(lambda: len(receiver.requests) == len(types) + 2, "the ends of the alerts")
    pages = [body for path, body in receiver.requests if path == "/pagerduty/v2/enqueue"]
    assert [each["event_action"] for each in pages] == ["trigger", "resolve"]
    assert len({each["dedup_key"] for each in pages}) == 1


def test_success_is_told_to_the_receiver_that_names_it(kubectl: Kubectl, receiver: Receiver, receivers: Path) -> None:
    configure(receivers, receiver, kubectl.namespace, team={}, happy={"events": ["succeeded"]})
    release(kubectl)
    assert notified(kubectl, 1) == ["succeeded happy"]
    kubectl("scale", "deployment", "sleep", "--replicas=7")
    eventually(lambda: kubectl.json("deployment", "sleep")["status"].get("readyReplicas") == 7, "the new pods")
    assert [path for path, _ in receiver.requests] == ["/happy"]


def test_policy_chooses_the_receivers_of_its_releases_among_those_of_the_administrator(
    kubectl: Kubectl, receiver: Receiver, receivers: Path
) -> None:
    named = {"selection": "named", "template": "{{workload}}: {{message}}"}
    own = {"team": {}, "audit": {"selection": "always"}}
    configure(receivers, receiver, kubectl.namespace, **own)
    message = policy(kubectl, "has no receiver shop for this namespace; there are: audit, team", notify=["shop"])
    assert accepted(kubectl)["reason"] == "UnknownReceiver"
    eventually(lambda: message in unknown_receiver_events(kubectl), "the Event UnknownReceiver")
    configure(receivers, receiver, kubectl.namespace, **own, shop=named, **{"not-theirs": {"namespaces": ["other"]}})
    until_accepted(kubectl, "the policy is in force")
    there = "has no receiver not-theirs for this namespace; there are: audit, shop, team"
    policy(kubectl, there, notify=["shop", "not-theirs"])
    policy(kubectl, notify=["shop"])
    version = release(kubectl)
    policy(kubectl, notify=["team"])  # the edit changes later releases only
    suspend(kubectl, version)
    assert notified(kubectl, 2) == ["suspended audit", "suspended shop"]
    texts = {path: body["text"] for path, body in receiver.requests}
    assert texts.keys() == {"/audit", "/shop"}
    assert texts["/shop"].startswith("sleep: failed: sleep-")
    assert "find error" in texts["/shop"]
    assert kubectl.json("changeworkloads")["items"][0]["spec"]["policy"]["notify"] == ["shop"]


def unknown_receiver_events(kubectl: Kubectl) -> list[str]:
    return [each["message"] for each in kubectl.json("events")["items"] if each["reason"] == "UnknownReceiver"]


def test_policy_with_an_empty_list_tells_only_the_receivers_that_it_cannot_exclude(
    kubectl: Kubectl, receiver: Receiver, receivers: Path
) -> None:
    configure(receivers, receiver, kubectl.namespace, team={}, audit={"selection": "always"})
    policy(kubectl, notify=[])
    version = release(kubectl)
    suspend(kubectl, version)
    assert notified(kubectl, 1) == ["suspended audit"]
    assert [path for path, _ in receiver.requests] == ["/audit"]
    assert kubectl.json("changeworkloads")["items"][0]["spec"]["policy"]["notify"] == []


def test_batch_that_a_check_holds_needs_approval_which_the_named_receiver_is_told(
    kubectl: Kubectl, receiver: Receiver, receivers: Path
) -> None:
    configure(receivers, receiver, kubectl.namespace, team={}, shop={"template": "{{event}} {{reason}}: {{summary}}"})
    prometheus = {"url": "http://no-prometheus.nowhere.svc", "query": "up", "max": "1", "samples": 1}
    prometheus |= {"intervalSeconds": 1, "lagSeconds": 0}
    check = {"name": "errors", "timeoutSeconds": 4, "onUnknown": "hold", "prometheus": prometheus}
    policy(kubectl, notify=["shop"], batch="100%", checks=[check])
    kubectl.apply(sleep(replicas=1))
    eventually(lambda: kubectl.json("changeworkloads")["items"], "the release")
    assert notified(kubectl, 1) == ["approval-needed shop"]
    ((path, body),) = receiver.requests
    assert path == "/shop"
    assert body["text"].startswith("approval-needed Held: AlterShield: the release of Deployment")
    assert "waits for your verdict. the check errors has no result" in body["text"]


def test_users_cannot_mark_notifications_as_sent(kubectl: Kubectl) -> None:
    name = f"sleep--x--{release(kubectl)}"
    patch = json.dumps({"status": {"notified": ["suspended/1/audit"]}})
    done = kubectl.run("patch", "changeworkload", name, "--subresource=status", "--type=merge", "-p", patch)
    assert done.returncode == 1
    assert "only AlterShield writes status.notified" in done.stderr
