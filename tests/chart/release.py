"""A release of the chart on a live API, as `helm` would handle it."""

import shutil
from pathlib import Path

import helm_python
import yaml

from altershield.api.names import SYSTEM_NAMESPACE
from tests.chart.rendering import CHART, RELEASE, Object
from tests.e2e.conftest import Kubectl

WAIT = 180
"""Seconds for Helm."""


class Release:
    """`altershield` in the system namespace, with its own connection."""

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

    def names(self) -> list[str]:
        """As `helm list --all` shows them."""
        return [release["name"] for release in self._helm.list(all_states=True)]


def changed_chart(directory: Path) -> Path:
    """A newer chart: another version, and a field more in the schema of ChangeWorkloads."""
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
