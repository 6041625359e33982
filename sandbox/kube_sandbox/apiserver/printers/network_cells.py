"""The cells of Services, Ingresses and endpoints."""

from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.printers.cells import age_of, first, map_text, spec_of, status_of


def service(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    ports = []
    for port in spec.get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}")
    internal = next(iter(spec.get("clusterIPs") or ()), "<none>")
    type_ = spec.get("type", "ClusterIP")
    return [
        type_,
        internal,
        _external(obj, type_),
        ",".join(ports) or "<none>",
        age_of(obj),
        map_text(spec.get("selector")),
    ]


def _external(obj: Object, type_: str) -> str:
    spec = spec_of(obj)
    external: list[str] = spec.get("externalIPs") or []
    if type_ == "ExternalName":
        return str(spec.get("externalName", ""))
    if type_ == "LoadBalancer":
        return ",".join([*_addresses(obj), *external]) or "<pending>"
    return ",".join(external) or "<none>"


def _addresses(obj: Object) -> list[str]:
    ingress = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({found.get("ip") or found.get("hostname") or "" for found in ingress})


def ingress(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    return [
        spec.get("ingressClassName") or "<none>",
        first(hosts, 3) or "*",
        ",".join(_addresses(obj)),
        "80, 443" if spec.get("tls") else "80",
        age_of(obj),
    ]


def endpoints(obj: Object) -> list[Any]:
    listed: list[str] = []
    for subset in obj.get("subsets") or ():
        ips = [address["ip"] for address in subset.get("addresses") or ()]
        ports = [port["port"] for port in subset.get("ports") or ()]
        listed += [f"{ip}:{port}" for port in ports for ip in ips] if ports else ips
    return [first(listed, 3) or "<none>", age_of(obj)]


def endpoint_slice(obj: Object) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [obj.get("addressType", ""), first(ports, 3) or "<unset>", first(addresses, 3) or "<unset>", age_of(obj)]


def ingress_class(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    parameters = spec.get("parameters")
    text = "<none>"
    if parameters:
        group = parameters.get("apiGroup")
        text = f"{parameters['kind']}{f'.{group}' if group else ''}/{parameters['name']}"
    return [spec.get("controller", ""), text, age_of(obj)]
