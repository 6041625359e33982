"""Budgets that annotations ask for, as the API server has them."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.sleep import SLEEP
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

GENERATE = "policy.kruise.io/generate-"
PDB, PUB = "poddisruptionbudgets.policy", "podunavailablebudgets.app.ops.cloud.alipay.com"


@pytest.fixture
def shop(installed: Path) -> Iterator[Kubectl]:
    """kubectl in a governed namespace with the Deployment `sleep`, whose annotations ask for both budgets."""
    kubectl = Kubectl(installed, f"budgets-{uuid.uuid4().hex[:8]}")
    kubectl("create", "namespace", kubectl.namespace)
    kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield=enabled")
    kubectl.apply(SLEEP)
    kubectl(
        "annotate",
        "deployment",
        "sleep",
        f"{GENERATE}pdb=true",
        f"{GENERATE}pub=true",
        f"{GENERATE}pub-minAvailable=80%",
    )
    yield kubectl
    kubectl.delete_namespaces()


def specs(kubectl: Kubectl, resource: str) -> dict[str, Json]:
    return {each["metadata"]["name"]: each["spec"] for each in kubectl.json(resource)["items"]}


def reason(kubectl: Kubectl, reason: str) -> bool:
    return bool(kubectl.json("events", "--field-selector", f"reason={reason}")["items"])


def test_budgets_follow_the_annotations_the_replicas_and_the_budgets_of_users(shop: Kubectl) -> None:
    selector = shop.json("deployment", "sleep")["spec"]["selector"]
    pdb = {"maxUnavailable": "25%", "selector": selector}
    pub = {"minAvailable": "80%", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sleep"}}
    eventually(lambda: specs(shop, PDB) == {"sleep": pdb}, "the PodDisruptionBudget")
    eventually(lambda: [pub.items() <= each.items() for each in specs(shop, PUB).values()] == [True], "the other one")

    shop("patch", "pdb", "sleep", "--type=merge", "-p", json.dumps({"spec": {"maxUnavailable": 5}}))
    eventually(lambda: specs(shop, PDB) == {"sleep": pdb}, "the edit to be put back")
    shop("annotate", "--overwrite", "deployment", "sleep", f"{GENERATE}pdb-minAvailable=4")
    eventually(lambda: specs(shop, PDB)["sleep"] == {"minAvailable": 4, "selector": selector}, "the new amount")

    shop("create", "pdb", "mine", "--selector=app=sleep", "--max-unavailable=1")
    eventually(lambda: set(specs(shop, PDB)) == {"mine"}, "the generated one to go")
    eventually(lambda: reason(shop, "BudgetSkipped"), "the Event")
    shop("delete", "pdb", "mine")
    eventually(lambda: set(specs(shop, PDB)) == {"sleep"}, "the generated one to be back")

    shop("scale", "deployment", "sleep", "--replicas=1")
    eventually(lambda: not specs(shop, PDB) and not specs(shop, PUB), "no budget for one replica")
    shop("scale", "deployment", "sleep", "--replicas=2")
    eventually(lambda: specs(shop, PDB) and specs(shop, PUB), "the budgets to be back")
    shop("annotate", "deployment", "sleep", f"{GENERATE}pdb-minAvailable-", f"{GENERATE}pdb-")
    eventually(lambda: not specs(shop, PDB), "the budget that is not asked for any more to go")
    shop("annotate", "namespace", shop.namespace, f"{GENERATE}pdb=true")
    eventually(lambda: specs(shop, PDB) == {"sleep": pdb}, "the default of the Namespace")
    shop("annotate", "namespace", shop.namespace, f"{GENERATE}pdb-maxUnavailable=many")
    eventually(lambda: reason(shop, "BudgetInvalid") and not specs(shop, PDB), "the wrong value to be reported")
    shop("delete", "deployment", "sleep", "--wait=false")
    eventually(lambda: not specs(shop, PUB), "the garbage collector")
