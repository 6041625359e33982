"""What a user with the role `altershield-breaker` may write: the breaker in their own name, and nothing else."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.pages import BREAKER
from altershield.api.resources import API_VERSION
from command.install.breaker_policies import ONLY_BREAKER
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

ANN, BOB = "ann", "bob"
KIND = "poddeletionflowcontrol"


@pytest.fixture
def guard(installed: Path) -> Iterator[str]:
    """The name of a PodDeletionFlowControl with a breaker, which counts no pods. Ann and Bob have the role."""
    admin, name = Kubectl(installed, SYSTEM_NAMESPACE), f"guard-{uuid.uuid4().hex[:8]}"
    spec = {
        "limitRules": [{"interval": "1h", "limit": 2}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "breaker": {"mode": "Manual"},
    }
    made = {"apiVersion": API_VERSION, "kind": "PodDeletionFlowControl", "metadata": {"name": name}, "spec": spec}
    admin("create", "-f", "-", stdin=json.dumps(made))
    admin("create", "clusterrolebinding", name, "--clusterrole=altershield-breaker", f"--user={ANN}", f"--user={BOB}")
    eventually(lambda: "windows" in admin.json(KIND, name).get("status", {}), "the reconciler to see the policy")
    yield name
    admin("delete", "clusterrolebinding", name)
    admin("delete", KIND, name)


def patch(kubeconfig: Path, user: str, name: str, **status: object) -> str:
    """Patch the status as this user. Returns the error; empty if it is accepted."""
    code, answer = Kubectl(kubeconfig, "default", f"--as={user}").merge(KIND, name, {"status": status}, "status")
    assert code != 200 or "warnings" not in answer, answer
    return "" if code == 200 else str(answer["message"])


def breaker(kubeconfig: Path, name: str) -> Json:
    found: Json = Kubectl(kubeconfig).json(KIND, name)["status"]["breaker"]
    return found


def test_users_open_and_reset_a_breaker_only_in_their_own_name(installed: Path, guard: str) -> None:
    def refused(user: str, field: str, **fields: object) -> None:
        error = patch(installed, user, guard, breaker=fields)
        assert "ValidatingAdmissionPolicy 'altershield-breaker'" in error
        assert f"status.breaker.{field}" in error

    refused(
        ANN,
        f"openedBy has to be your user name: ann; see {BREAKER}; run: altershield breaker open",
        state="Open",
        openedBy=BOB,
    )
    refused(ANN, "rule", state="Open", openedBy=ANN, rule="1h/2")
    assert patch(installed, ANN, guard, breaker={"state": "Open", "openedBy": ANN}) == ""
    refused(BOB, "openedBy", openedBy=None)
    refused(BOB, "openedBy", openedBy="carol")
    refused(
        BOB,
        f"resetBy has to be your user name: bob; see {BREAKER}; run: altershield breaker reset",
        state="Closed",
        resetBy=ANN,
    )
    assert patch(installed, BOB, guard, breaker={"state": "Closed", "openedBy": None, "resetBy": BOB}) == ""
    eventually(lambda: "openedBy" not in breaker(installed, guard), "the name of who opened it to go")
    refused(ANN, "resetBy", resetBy=ANN + BOB)

    # Ann opens and resets by the state alone, where no other name stands for what she does
    assert patch(installed, ANN, guard, breaker={"state": "Open"}) == ""
    refused(ANN, "resetBy", state="Closed")
    assert breaker(installed, guard)["state"] == "Open"
    assert patch(installed, ANN, guard, breaker={"state": "Closed", "resetBy": None}) == ""
    eventually(lambda: breaker(installed, guard).get("state", "Closed") == "Closed", "the breaker to be closed")


def test_users_close_a_breaker_neither_by_its_times_nor_by_half_opening_it(installed: Path, guard: str) -> None:
    admin, long_ago = Kubectl(installed), "2000-01-01T00:00:00Z"
    admin("patch", KIND, guard, "--type=merge", "-p", '{"spec":{"breaker":{"mode":"Auto"}}}')
    assert "change with the state only" in patch(installed, BOB, guard, breaker={"since": long_ago})
    assert patch(installed, ANN, guard, breaker={"state": "Open", "openedBy": ANN}) == ""
    eventually(lambda: "until" in breaker(installed, guard), "the reconciler to date the open breaker")
    for fields in ({"since": long_ago}, {"since": None}, {"until": long_ago}, {"passed": 1}):
        assert "change with the state only" in patch(installed, BOB, guard, breaker=fields)
    error = patch(installed, BOB, guard, breaker={"state": "HalfOpen", "since": long_ago})
    assert f"status.breaker.state can be set to Open and Closed; see {BREAKER}; run: altershield breaker reset" in error
    found = breaker(installed, guard)
    assert (found["state"], found["openedBy"]) == ("Open", ANN)
    assert patch(installed, ANN, guard, breaker={"since": None, "openedBy": ANN}) == "", "Ann opens it again"


def test_users_write_nothing_but_the_breaker(installed: Path, guard: str) -> None:
    windows = Kubectl(installed).json(KIND, guard)["status"]["windows"]
    forged: dict[str, object] = {
        "windows": [{**each, "used": 2} for each in windows],
        "pending": {"u": {"namespace": "default", "name": "web"}},
        "topSources": [{"by": BOB, "count": 9}],
        "conditions": [],
        "observedGeneration": 9,
    }
    for field, value in forged.items():
        assert ONLY_BREAKER in patch(installed, ANN, guard, **{field: value}), field
    assert ONLY_BREAKER in patch(installed, ANN, guard, windows=None, breaker={"state": "Open", "openedBy": ANN})
    changed = Kubectl(installed).run(
        "patch", KIND, guard, "--type=merge", "-p", '{"spec":{"mode":"Warn"}}', f"--as={ANN}"
    )
    assert "cannot patch resource" in changed.stderr
