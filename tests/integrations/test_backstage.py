"""The files for Backstage name a label and a resource that exist."""

import yaml

from altershield.api.labels import WORKLOAD_NAME
from altershield.api.resources import CHANGE_WORKLOADS
from tests.integrations.objects import FOLDER, crds

BACKSTAGE = FOLDER / "backstage"


def test_releases_are_selected_by_the_label_with_the_name_of_their_workload() -> None:
    component, releases = yaml.safe_load_all((BACKSTAGE / "catalog-info.yaml").read_text())
    assert (component["kind"], releases["kind"]) == ("Component", "Resource")
    selector = releases["metadata"]["annotations"]["backstage.io/kubernetes-label-selector"]
    assert selector == f"{WORKLOAD_NAME}={component['metadata']['name']}"
    assert component["spec"]["dependsOn"] == [f"resource:{releases['metadata']['name']}"]


def test_custom_resource_of_the_plugin_exists() -> None:
    (found,) = yaml.safe_load((BACKSTAGE / "app-config.yaml").read_text())["kubernetes"]["customResources"]
    spec = crds()[CHANGE_WORKLOADS.kind]["spec"]
    assert found == {
        "group": spec["group"],
        "apiVersion": spec["versions"][0]["name"],
        "plural": spec["names"]["plural"],
    }


def test_link_leads_to_a_dashboard_and_its_variable() -> None:
    component, _ = yaml.safe_load_all((BACKSTAGE / "catalog-info.yaml").read_text())
    (link,) = component["metadata"]["links"]
    _, _, uid = link["url"].partition("?")[0].rpartition("/")
    dashboard = (FOLDER.parent / "charts" / "altershield" / "files" / "dashboards" / f"{uid}.json").read_text()
    assert '"name": "workload_namespace"' in dashboard
    assert "var-workload_namespace=" in link["url"]
