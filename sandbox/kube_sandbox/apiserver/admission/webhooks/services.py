"""Resolves the Services in webhook configurations to addresses."""

from kube_sandbox.apiserver.admission.webhooks.call import Services
from kube_sandbox.apiserver.attributes import Object, Reader
from kube_sandbox.apiserver.gotext import quoted


def from_endpoints(reader: Reader) -> Services:
    """A resolver that reads EndpointSlices and Endpoints, because this server has no network for cluster IPs."""

    def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        service = reader.get("", "services", name, namespace)
        if service is None:
            raise LookupError(f"service {quoted(name)} not found")
        ports = [entry for entry in service["spec"].get("ports") or () if entry["port"] == port]
        if not ports:
            raise LookupError(f"no service port {port} found for service {quoted(name)}")
        if service["spec"].get("type") == "ExternalName":
            return service["spec"]["externalName"], port
        for address, target in _endpoints(reader, namespace, name, ports[0].get("name") or ""):
            return address, target
        raise LookupError(f"no endpoints available for service {quoted(name)}")

    return resolve


def _endpoints(reader: Reader, namespace: str, name: str, port_name: str) -> list[tuple[str, int]]:
    found = []
    for part in reader.list("discovery.k8s.io", "endpointslices", namespace):
        if (part["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name:
            ready = [each for each in part.get("endpoints") or () if _is_ready(each)]
            found += [(each["addresses"][0], number) for each in ready for number in _ports(part, port_name)]
    for part in (reader.get("", "endpoints", name, namespace) or {}).get("subsets") or ():
        found += [(each["ip"], number) for each in part.get("addresses") or () for number in _ports(part, port_name)]
    return found


def _is_ready(endpoint: Object) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _ports(part: Object, name: str) -> list[int]:
    return [entry["port"] for entry in part.get("ports") or () if (entry.get("name") or "") == name]
