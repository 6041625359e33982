"""Defaults of pods and pod templates (k8s.io/kubernetes, pkg/apis/core/v1/defaults.go and conversion.go)."""

import re
from collections.abc import Iterator

from kube_sandbox.apiserver.attributes import Object

_IMAGE = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?P<tag>:[A-Za-z0-9_][\w.-]{0,127})?(?P<digest>@[A-Za-z][\w+.-]*:[0-9a-fA-F]{32,})?"
)
_VOLUME_MODE = 0o644
_TOKEN_SECONDS = 3600


def default_pod(pod: Object) -> None:
    """Set the defaults of a pod, in place. In addition to those of a template, these are requests equal to limits,
    service links, host ports for the host network, and the two fields for the pod's IP addresses."""
    spec = pod["spec"]
    for container in _containers(spec):
        resources = container.setdefault("resources", {})
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **resources.get("requests", {})}
    spec.setdefault("enableServiceLinks", True)
    default_pod_spec(spec)
    if spec.get("hostNetwork"):
        for port in (port for container in _containers(spec) for port in container.get("ports") or ()):
            port.setdefault("hostPort", port["containerPort"])
    status = pod.get("status") or {}
    if ips := status.get("podIPs"):
        status["podIP"] = ips[0]["ip"]
    elif ip := status.get("podIP"):
        status["podIPs"] = [{"ip": ip}]


def default_template(template: Object) -> None:
    default_pod_spec(template["spec"])


def default_pod_spec(spec: Object) -> None:
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for container in (*_containers(spec), *(spec.get("ephemeralContainers") or ())):
        _default_container(container)


def _containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _default_container(container: Object) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        _default_field(source.get("fieldRef"))
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            _default_probe(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_action(handler)


def pull_policy(image: str) -> str:
    """The default imagePullPolicy: Always for the tag `latest`, which is also the default tag, else IfNotPresent."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else ":latest")
    return "Always" if tag == ":latest" else "IfNotPresent"


def _default_probe(probe: Object) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _default_action(probe)
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_action(action: Object) -> None:
    if (http := action.get("httpGet")) is not None:
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")


def _default_field(selector: Object | None) -> None:
    if selector is not None:
        selector.setdefault("apiVersion", "v1")


def _default_volume(volume: Object) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if (source := volume.get(name)) is not None:
            source.setdefault("defaultMode", _VOLUME_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if (image := volume.get("image")) is not None:
        image.setdefault("pullPolicy", pull_policy(image.get("reference", "")))
    if (claim := (volume.get("ephemeral") or {}).get("volumeClaimTemplate")) is not None:
        claim["spec"].setdefault("volumeMode", "Filesystem")
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _default_field(item.get("fieldRef"))
    for projection in (volume.get("projected") or {}).get("sources") or ():
        if (token := projection.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", _TOKEN_SECONDS)
        for item in (projection.get("downwardAPI") or {}).get("items") or ():
            _default_field(item.get("fieldRef"))
