"""The steps of *Add a handler* in docs/architecture.md: one file and one line of the registry."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

import gatekeeper.handlers
from altershield.admission import registry
from altershield.admission.registration import Registration
from altershield.admission.webhooks import webhooks
from altershield.process.certificate import Certificate
from command.install.webhooks import registered as registered_fields
from gatekeeper.dispatch import decide
from gatekeeper.metrics import Metrics
from gatekeeper.routes import Route, routes
from kube_base import resources
from kube_base.resources import CONFIG_MAPS

from .reviews import StaticListers, encode, review, written

PAGE = (Path(__file__).parents[3] / "docs" / "architecture.md").read_text()
PATH = "/validate--v1-configmap"


def steps() -> tuple[str, str, Registration]:
    """The path of the file below gatekeeper/handlers, its content, and the registration."""
    section = PAGE.partition("## Add a handler\n")[2].partition("\n## ")[0]
    (path,) = re.findall(r"1\. `gatekeeper/handlers/([\w/]+\.py)`", section)
    file, line = map(textwrap.dedent, re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    names = {**vars(registry), **vars(resources)}
    made = eval(line.strip(), names)  # noqa: S307  (the text is from a page of this repository)
    return path, file, made


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Route]:
    """The routes after the steps."""
    path, content, made = steps()
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(content)
    monkeypatch.setattr(gatekeeper.handlers, "__path__", [*gatekeeper.handlers.__path__, str(tmp_path)])
    return routes((*registry.REGISTRY, made))


def deletion(labels: dict[str, str]) -> dict[str, Any]:
    old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rates", "labels": labels}}
    body = review(None, None, operation="DELETE", name="rates")
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    return {**body, "request": {**body["request"], "resource": resource, "oldObject": old}}


def test_new_handler_gets_its_requests_and_other_routes_stay_unchanged(followed: dict[str, Route]) -> None:
    assert {path: route.webhook for path, route in followed.items() if path != PATH} == {
        path: route.webhook for path, route in routes().items()
    }
    route = followed[PATH]

    def answer(labels: dict[str, str]) -> dict[str, Any]:
        wire = route.decode(encode(deletion(labels)))
        found: dict[str, Any] = json.loads(written(wire.uid, decide(route, wire, StaticListers())))["response"]
        return found

    assert answer({"app": "web"})["allowed"] is True
    denied = answer({"example.com/keep": ""})
    assert denied["allowed"] is False
    assert denied["status"]["message"] == "AlterShield: configmap rates has the label example.com/keep"


def test_new_handler_adds_its_webhook_and_its_metrics(followed: dict[str, Route]) -> None:
    (made,) = [each for each in webhooks((*registry.REGISTRY, steps()[2])) if each.resource == CONFIG_MAPS]
    assert registered_fields(made) == {
        "name": "vconfigmap.kb.io",
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["DELETE"],
                "resources": ["configmaps"],
                "scope": "Namespaced",
            }
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "matchPolicy": "Equivalent",
    }
    shown = generate_latest(Metrics(Certificate(Path(), Path()), followed.values()).registry).decode()
    assert 'decision="denied",dry_run="false",operation="DELETE",reason="kept",webhook="vconfigmap.kb.io"' in shown
