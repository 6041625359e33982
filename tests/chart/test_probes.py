"""The measurements in docs/reliability.md use the probes of the chart."""

import helm_python

from bench.availability.kubelet import GRACE_SECONDS, LIVENESS, READINESS, Probe
from tests.chart.rendering import containers, rendered, the

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
