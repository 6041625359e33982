"""The Job that ends the holds of releases in steps before the release is uninstalled."""

import helm_python

from tests.chart.rendering import HOOK, Object, rendered


def hooks(chart: "helm_python.Chart", *, on: bool) -> dict[str, Object]:
    found = rendered(chart, {"releaseInSteps": {"endOnUninstall": on}})
    return {each["kind"]: each for each in found if each["metadata"].get("annotations", {}).get(HOOK) == "pre-delete"}


def test_the_job_runs_before_the_deletion_with_rights_of_its_own(chart: "helm_python.Chart") -> None:
    found = hooks(chart, on=True)
    assert set(found) == {
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Job",
    }  # fmt: skip
    pod = found["Job"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
    (container,) = pod["containers"]
    assert (container["command"][-1], container["args"][0]) == ("uninstall", "--only-holds")
    verbs = {verb for rule in found["ClusterRole"]["rules"] for verb in rule["verbs"]}
    assert verbs == {"list"}, "it changes no workload itself"


def test_the_job_can_be_left_out(chart: "helm_python.Chart") -> None:
    assert not hooks(chart, on=False)
