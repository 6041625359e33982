"""A release of the chart on a live API, handled with the Helm engine."""

import base64
import datetime
import json
import shutil
from pathlib import Path

import helm_python
import pytest
import yaml

from altershield.api.names import SYSTEM_NAMESPACE
from command import main
from kube_base.pki import Authority
from tests.chart.rendering import CHART, RELEASE, Object
from tests.support.kubectl import Kubectl
from tests.support.processes import Done, call

WAIT = 180
"""Seconds until Helm gives up."""

CHANGE_WORKLOAD: Object = {
    "apiVersion": "app.ops.cloud.alipay.com/v1alpha1",
    "kind": "ChangeWorkload",
    "metadata": {"name": "kept"},
    "spec": {
        "changeWorkloadId": "kept",
        "serviceName": "kept",
        "appName": "kept",
        "reversion": "1",
        "countThreshold": 1,
        "waitTimeThreshold": 60,
        "createTime": "2026-01-01 00:00:00",
        "createTimeUnix": 1767225600,
    },
}


class Release:
    """The release `altershield` in the system namespace."""

    def __init__(self, kubeconfig: Path) -> None:
        self._helm = helm_python.Config(kubeconfig_path=kubeconfig, namespace=SYSTEM_NAMESPACE)

    def install(self, values: Object | None = None, chart: Path = CHART, *, wait: bool = False) -> Object:
        return self._helm.install(
            str(chart), RELEASE, values or {}, create_namespace=True, timeout=WAIT, wait="watcher" if wait else None
        )

    def upgrade(self, values: Object | None = None, chart: Path = CHART) -> Object:
        return self._helm.upgrade(str(chart), RELEASE, values or {}, timeout=WAIT)

    def rollback(self, revision: int) -> None:
        self._helm.rollback(RELEASE, version=revision, timeout=WAIT)

    def uninstall(self) -> None:
        self._helm.uninstall(RELEASE, ignore_not_found=True, timeout=WAIT)

    def test(self) -> Object:
        return self._helm.test(RELEASE, timeout=WAIT)

    def notes(self) -> str:
        notes: str = self._helm.get_all(RELEASE)["info"]["notes"]
        return notes

    def names(self) -> list[str]:
        """As `helm list --all` shows them."""
        return [release["name"] for release in self._helm.list(all_states=True)]


def changed_chart(directory: Path) -> Path:
    """A copy of the chart with a newer version, and with an additional field in the schema of ChangeWorkloads."""
    copy = Path(shutil.copytree(CHART, directory / CHART.name))
    (chart_file, crd_file) = (copy / "Chart.yaml", copy / "files" / "crds" / "changeworkloads.yaml")
    metadata = yaml.safe_load(chart_file.read_text())
    chart_file.write_text(yaml.safe_dump(metadata | {"version": "99.0.0"}))
    crd = yaml.safe_load(crd_file.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["ticket"] = {"type": "string", "maxLength": 63}
    crd_file.write_text(yaml.safe_dump(crd))
    return copy


def owners(system: Kubectl, what: str) -> list[Object]:
    found: list[Object] = system.json(what)["metadata"].get("ownerReferences", [])
    return found


def listed(objects: list[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


class Uninstall:
    """`altershield uninstall` in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, kubeconfig: Path, *options: str) -> Done:
        arguments = ["uninstall", "--kubeconfig", str(kubeconfig), *options]
        return call(main, "altershield", *arguments, capture=self._capture)


def provide(kubectl: Kubectl, secret: str, service: str) -> bytes:
    """Create a Secret with a certificate of another CA, for this machine and the Service. Returns the CA."""
    authority = Authority.create("theirs", lifetime=datetime.timedelta(days=1))
    pair = authority.issue("gate", hosts=("127.0.0.1", service), lifetime=datetime.timedelta(days=1))
    content = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.pair.certificate}
    data = {key: base64.b64encode(value).decode() for key, value in content.items()}
    made = {"metadata": {"name": secret}, "type": "kubernetes.io/tls", "data": data}
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Secret", **made}))
    return authority.pair.certificate
