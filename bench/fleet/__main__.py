"""Measures what AlterShield costs in a fleet: at rest, while pods are replaced, and in a wave of releases.

    python -m bench.fleet simulated --scale 1       # the limits that Kubernetes supports
    python -m bench.fleet cluster --deployments 200 # the sandbox, or with KUBEBUILDER_ASSETS a real API server

`simulated`: the API of `bench.cluster`, which takes little CPU and memory. So a fleet of the full size fits on a small
machine. A Deployment has 11 ReplicaSets and a ChangeWorkload, a pod has a ChangePod, an object has 1 KB of annotations.
Replaced pods, reports of nodes and releases are simulated (`events.py`). The gatekeeper gets the reviews of all
releases.

`cluster`: an API server with simulated nodes. All Deployments are created and released through its webhooks. The
PriorityLevelConfiguration and the FlowSchemas of the chart are installed.

The gatekeeper and the reconciler are processes of their own, with default thresholds. The time to a verdict begins when
a pod is ready, and does not contain the observation time. It contains the wait for the other pods of the batch.
"""

import os
from typing import Annotated

import typer
import uvloop

from bench.cluster.shape import REVISIONS, limits
from bench.fleet import simulated as in_simulation
from bench.fleet.created import CreatedFleet
from bench.fleet.phases import report

_REPLICAS = 5
_CHURN = 20.0
_RELEASES = 1000

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def simulated(
    scale: Annotated[float, typer.Option(help="Factor for the fleet, the replaced pods and the releases.")] = 1.0,
    minutes: Annotated[float, typer.Option(help="Duration, without the start.")] = 30.0,
    churn: Annotated[float, typer.Option(help="Pods that are replaced in a second, at scale 1.")] = _CHURN,
    releases: Annotated[int, typer.Option(help="Releases in the wave, at scale 1.")] = _RELEASES,
    rate: Annotated[float, typer.Option(help="Releases of the wave in a second, at scale 1.")] = 10.0,
) -> None:
    """Measure a fleet whose API server is simulated."""
    shape = limits(scale, fat=0)
    count = max(1, round(releases * scale))
    phases = uvloop.run(in_simulation.measure(shape, minutes * 60, churn * scale, count, rate * scale))
    title = f"{shape.title}, simulated API"
    sizes = {"pods": shape.pods, "deployments": shape.deployments, "nodes": shape.nodes, "minutes": minutes}
    sizes |= {"churn": churn * scale, "releases": count, "rate": rate * scale}
    report(f"fleet-simulated-{shape.deployments}", title, sizes, phases)


@app.command()
def cluster(
    deployments: Annotated[int, typer.Option(min=1)] = 200,
    replicas: Annotated[int, typer.Option(min=1)] = _REPLICAS,
    revisions: Annotated[int, typer.Option(min=1, help="ReplicaSets of a Deployment.")] = REVISIONS,
    nodes: Annotated[int, typer.Option(min=1)] = 20,
    minutes: Annotated[float, typer.Option(help="Duration, without the creation of the Deployments.")] = 30.0,
    churn: Annotated[float, typer.Option(help="Pods that are deleted in a second.")] = 2.0,
    releases: Annotated[int, typer.Option(help="Releases in the wave.")] = 100,
    rate: Annotated[float, typer.Option(help="Releases in a second, also when the Deployments are created.")] = 5.0,
) -> None:
    """Measure the sandbox, or with KUBEBUILDER_ASSETS a real API server."""
    fleet = CreatedFleet(deployments, replicas, revisions, churn, min(releases, deployments), rate)
    phases = uvloop.run(fleet.measure(nodes, minutes * 60))
    kind = "kube-apiserver" if "KUBEBUILDER_ASSETS" in os.environ else "sandbox"
    title = f"{deployments * replicas:,} pods in {deployments:,} Deployments, {nodes:,} nodes, {kind}"
    sizes = {"pods": deployments * replicas, "deployments": deployments, "nodes": nodes, "minutes": minutes}
    sizes |= {"churn": churn, "releases": releases, "rate": rate}
    report(f"fleet-{kind}-{deployments}", title, sizes, phases)


if __name__ == "__main__":
    app()
