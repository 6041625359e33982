"""Which probes decide whether the pod of a gatekeeper is ready."""

import helm_python
import pytest

from bench.availability.kubelet import GRACE_SECONDS, LIVENESS, READINESS, Probe
from tests.chart.rendering import containers, of_kind, rendered, the

_DEFAULT_PERIOD = 10


def test_measurements_use_the_probes_of_the_chart(chart: helm_python.Chart) -> None:
    deployment = the(rendered(chart), "Deployment")
    gatekeeper = containers(deployment)["gatekeeper"]
    for name, measured in (("readinessProbe", READINESS), ("livenessProbe", LIVENESS)):
        spec = gatekeeper[name]
        assert (
            Probe(spec.get("periodSeconds", _DEFAULT_PERIOD), spec["timeoutSeconds"], spec["failureThreshold"])
            == measured
        )
    pod = deployment["spec"]["template"]["spec"]
    grace = gatekeeper["livenessProbe"].get("terminationGracePeriodSeconds", pod["terminationGracePeriodSeconds"])
    assert grace == GRACE_SECONDS


@pytest.mark.parametrize("separate", [False, True])
def test_only_the_gatekeeper_can_make_its_pod_unready(chart: helm_python.Chart, separate: bool) -> None:
    """The kubelet counts the readiness of all containers. The others are ready from their startup on, and the first
    process of their container starts the process again that ends."""
    values = {"reconciler": {"separate": separate}}
    deployments = {
        each["metadata"]["name"]: containers(each) for each in of_kind(rendered(chart, values), "Deployment")
    }
    gate = deployments["altershield"]
    assert "readinessProbe" in gate.pop("gatekeeper")
    assert set(gate) == ({"certgen"} if separate else {"reconciler", "certgen"})
    for name, container in gate.items():
        assert [probe for probe in container if probe.endswith("Probe")] == ["startupProbe"]
        started = [*container["command"], *container["args"]]
        assert started[:4] == ["python", "-m", "altershield.process.restarts", name]
        assert any(argument.startswith("--metrics-port=") for argument in started)
    if separate:  # nothing else depends on its readiness: the kubelet restarts it
        alone = deployments["altershield-reconciler"]["reconciler"]
        assert alone["command"] == ["python", "-m", "reconciler"]
        assert {"livenessProbe", "readinessProbe"} <= set(alone)
