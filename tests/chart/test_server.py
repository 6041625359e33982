"""The values `server`: what they render, and that the reconciler accepts it."""

import dataclasses
import re
from typing import Any

import helm_python
import pytest

import reconciler.__main__
from altershield.api.names import SYSTEM_NAMESPACE
from certgen.settings import service_hosts
from kube_base.errors import UsageError
from reconciler.server.server_options import ServerOptions, callback_url, server_settings
from reconciler.server.server_settings import PHASES
from tests.chart.arguments import parsed
from tests.chart.rendering import (
    DEFAULTS,
    RELEASE,
    SCHEMA,
    Object,
    callback_services,
    containers,
    manifests,
    notes,
    of_kind,
    rendered,
    the,
    variables,
)

URL = "http://altershield.altershield:8080"
TOKEN: Object = {"name": "altershield-server", "key": "platform-token"}
CALLBACKS: Object = {"url": URL, "tokenSecret": TOKEN, "callbacks": {"enabled": True}}
NOT_CALLBACKS = service_hosts(RELEASE, SYSTEM_NAMESPACE)
BOTH = (*NOT_CALLBACKS, *service_hosts(f"{RELEASE}-callbacks", SYSTEM_NAMESPACE))


def deployment(chart: helm_python.Chart, server: Object | None = None, **values: Object) -> Object:
    return the(rendered(chart, {**values, **({"server": server} if server else {})}), "Deployment")


def options(chart: helm_python.Chart, server: Object) -> ServerOptions:
    """The options that the reconciler reads from its arguments."""
    params = parsed(reconciler.__main__.app, list(containers(deployment(chart, server))["reconciler"]["args"])).params
    return ServerOptions(**{field.name: params[field.name] for field in dataclasses.fields(ServerOptions)})


def without_token_file(found: ServerOptions) -> ServerOptions:
    return dataclasses.replace(found, server_token_file=None)


def test_without_a_url_no_other_value_changes_any_rendered_text(chart: helm_python.Chart, values: Object) -> None:
    """A release without a server is the same as before there were these values."""
    values = {key: value for key, value in values.items() if key != "server"}
    others = {
        "server": {
            "platform": "other",
            "tenant": "other",
            "scene": "other",
            "phase": "gray_phase",
            "tokenSecret": {"name": "other", "key": "other"},
            "callbacks": {"port": 8091, "tls": False},
        },
        "networkPolicy": {**values.get("networkPolicy", {}), "callbacksFrom": [], "serverPorts": [1]},
    }
    before, after = manifests(chart, values), manifests(chart, {**values, **others})
    assert before == after
    assert not re.search(r"--callback|-callbacks|name: callbacks|--server|tokenreviews", str(before.values()))


def test_defaults_and_phases_are_those_of_the_reconciler() -> None:
    defaults, option = DEFAULTS["server"], ServerOptions()
    assert (defaults["platform"], defaults["tenant"], defaults["scene"], defaults["phase"]) == (
        option.server_platform,
        option.server_tenant,
        option.server_scene,
        option.server_phase,
    )
    assert SCHEMA["properties"]["server"]["properties"]["phase"]["enum"] == list(PHASES)


def test_reconciler_reads_all_values_of_the_server(chart: helm_python.Chart) -> None:
    found = options(
        chart,
        {
            **CALLBACKS,
            "platform": "cluster:1",
            "tenant": 'retail "1"',
            "scene": "com.example.release",
            "phase": "gray_phase",
        },
    )
    assert (found.server_url, found.server_platform, found.server_tenant) == (URL, "cluster:1", 'retail "1"')
    assert (found.server_scene, found.server_phase) == ("com.example.release", "gray_phase")
    assert (str(found.server_token_file), found.callback_port) == ("/server/token", 8090)
    assert (str(found.callback_tls_cert_file), str(found.callback_tls_private_key_file)) == (
        "/certificates/tls.crt",
        "/certificates/tls.key",
    )


def test_without_token_secret_and_callbacks_the_reconciler_gets_no_files(chart: helm_python.Chart) -> None:
    found = options(chart, {"url": URL})
    assert found == ServerOptions(server_url=URL)
    plain = options(chart, {"url": URL, "callbacks": {"enabled": True, "port": 8443, "tls": False}})
    service = f"http://{RELEASE}-callbacks.{SYSTEM_NAMESPACE}.svc:8443"
    assert plain == ServerOptions(server_url=URL, callback_port=8443, callback_url=service)
    for server in ({"url": URL}, {"url": URL, "callbacks": {"enabled": True, "tls": False}}):
        mounts = containers(deployment(chart, server))["reconciler"]["volumeMounts"]
        assert [mount["name"] for mount in mounts] == ["token"]


def test_only_the_reconciler_gets_the_token_as_a_file_that_follows_the_secret(chart: helm_python.Chart) -> None:
    found = deployment(chart, CALLBACKS)
    (volume,) = [volume for volume in found["spec"]["template"]["spec"]["volumes"] if "secret" in volume]
    assert volume["secret"] == {"secretName": TOKEN["name"], "items": [{"key": TOKEN["key"], "path": "token"}]}
    mounts = {
        name: mount
        for name, container in containers(found).items()
        for mount in container.get("volumeMounts", ())
        if mount["name"] == volume["name"]
    }
    # a subPath would not follow the Secret
    assert mounts == {"reconciler": {"name": volume["name"], "mountPath": "/server", "readOnly": True}}
    environment = [each for container in containers(found).values() for each in container.get("env", ())]
    assert not [each for each in environment if "valueFrom" in each or TOKEN["name"] in str(each)]


def test_callbacks_over_tls_use_the_certificate_of_the_gatekeeper_read_only(chart: helm_python.Chart) -> None:
    found = containers(deployment(chart, CALLBACKS))
    (mount,) = [mount for mount in found["gatekeeper"]["volumeMounts"] if mount["name"] == "certificates"]
    assert mount["readOnly"] is True
    assert mount in found["reconciler"]["volumeMounts"]


@pytest.mark.parametrize(
    ("callbacks", "hosts"),
    [({}, NOT_CALLBACKS), ({"enabled": True}, BOTH), ({"enabled": True, "tls": False}, NOT_CALLBACKS)],
    ids=["off", "tls", "plain"],
)
def test_certificate_names_the_callback_service_only_if_it_uses_tls(
    chart: helm_python.Chart, callbacks: Object, hosts: tuple[str, ...]
) -> None:
    server = {"url": URL, "callbacks": callbacks}
    issued = rendered(chart, {"server": server, "certificates": {"mode": "cert-manager"}})
    (leaf,) = [obj for obj in of_kind(issued, "Certificate") if not obj["spec"].get("isCA")]
    assert tuple(leaf["spec"]["dnsNames"]) == hosts

    environment = variables(containers(deployment(chart, server))["certgen"])
    assert tuple(environment.get("ALTERSHIELD_SAN", "").split()) == (hosts if hosts == BOTH else ())
    provided = deployment(chart, server, certificates={"mode": "secret"})
    assert "ALTERSHIELD_SAN" not in variables(containers(provided)["certgen"]), "certgen does not issue it"


def test_callback_service_exists_only_with_callbacks(chart: helm_python.Chart) -> None:
    assert callback_services(rendered(chart, {"server": {"url": URL, "tokenSecret": TOKEN}})) == []
    (service,) = callback_services(rendered(chart, {"server": CALLBACKS}, release="gate"))
    assert service["metadata"]["name"] == "gate-altershield-callbacks"
    assert service["spec"]["ports"] == [{"name": "callbacks", "port": 8090, "targetPort": "callbacks"}]


@pytest.mark.parametrize(
    ("url", "ports", "egress"),
    [
        ("http://altershield", [], [80]),
        ("https://altershield.example/path:1", [], [443]),
        ("http://altershield:8080/path", [], [8080]),
        ("http://[fd00::1]", [], [80]),
        ("http://[fd00::1]:8080", [], [8080]),
        ("http://altershield", [8080, 8443], [8080, 8443]),
    ],
)
def test_network_policy_admits_callbacks_and_requests_to_the_server(
    chart: helm_python.Chart, url: str, ports: list[int], egress: list[int]
) -> None:
    peers = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    policy: dict[str, Any] = {"enabled": True, "callbacksFrom": peers, "serverPorts": ports}
    without, found = (
        the(rendered(chart, {"server": server, "networkPolicy": policy}), "NetworkPolicy")["spec"]
        for server in ({}, {**CALLBACKS, "url": url})
    )
    assert found["egress"] == [*without["egress"], {"ports": [{"port": port, "protocol": "TCP"} for port in egress]}]
    rule = {"from": peers, "ports": [{"port": "callbacks", "protocol": "TCP"}]}
    assert found["ingress"] == [*without["ingress"], rule]
    nobody = rendered(chart, {"server": CALLBACKS, "networkPolicy": {**policy, "callbacksFrom": []}})
    assert the(nobody, "NetworkPolicy")["spec"]["ingress"] == without["ingress"]


@pytest.mark.parametrize(
    "url",
    [URL, "https://altershield.example/a/b/", "http://10.0.0.1", "http://[::1]:8080", "http://a_b.c:65535", "http://a"],
)
def test_reconciler_accepts_the_urls_that_the_chart_accepts(chart: helm_python.Chart, url: str) -> None:
    settings = server_settings(without_token_file(options(chart, {"url": url})))
    assert settings is not None
    assert settings.url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://user:password@altershield",
        "http://altershield?a=b",
        "http://altershield/#a",
        "http:///path",
        "http://altershield:0",
        "http://altershield:65536",
        "http://altershield:port",
        "http://[::1",
    ],
)
def test_urls_that_the_reconciler_refuses_are_rejected(chart: helm_python.Chart, url: str) -> None:
    with pytest.raises(helm_python.HelmError, match=r"server\.url must") as caught:
        rendered(chart, {"server": {"url": url}})
    assert "password@" not in str(caught.value)
    if url != "http://altershield:0":  # the port 0 is useless, but the reconciler does not refuse it
        with pytest.raises(UsageError):
            server_settings(ServerOptions(server_url=url))


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ({"callbacks": {"enabled": True, "url": "https://a@b"}}, "server.callbacks.url"),
        *(
            ({"url": URL, "callbacks": {"enabled": True, "port": port}}, f"port must not be {port}: another container")
            for port in (8080, 8081, 8082, 10250)
        ),
    ],
)
def test_callback_values_that_cannot_work_are_rejected(chart: helm_python.Chart, server: Object, sentence: str) -> None:
    with pytest.raises(helm_python.HelmError) as caught:
        rendered(chart, {"server": server})
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("server", "where"),
    [
        ({"url": "altershield:8080"}, "/server/url"),
        ({"url": "ftp://altershield"}, "/server/url"),
        ({"url": "http://alter shield"}, "/server/url"),
        ({"platform": ""}, "/server/platform"),
        ({"platform": "p" * 33}, "/server/platform"),
        ({"platform": "a b"}, "/server/platform"),
        ({"tenant": " "}, "/server/tenant"),
        ({"tenant": "t" * 65}, "/server/tenant"),
        ({"scene": "a,b"}, "/server/scene"),
        ({"scene": ""}, "/server/scene"),
        ({"phase": "PROD_PHASE"}, "/server/phase"),
        ({"tokenSecret": {"name": "Altershield"}}, "/server/tokenSecret/name"),
        ({"tokenSecret": {"key": "a/b"}}, "/server/tokenSecret/key"),
        ({"tokenSecret": {"key": ""}}, "/server/tokenSecret/key"),
        ({"token": "secret"}, "/server"),
        ({"callbacks": {"port": 443}}, "/server/callbacks/port"),
        ({"callbacks": {"port": 65536}}, "/server/callbacks/port"),
        ({"callbacks": {"tls": "false"}}, "/server/callbacks/tls"),
    ],
)
def test_wrong_values_of_the_server_are_rejected_with_their_path(
    chart: helm_python.Chart, server: Object, where: str
) -> None:
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema({"server": server})
    assert f"'{where}'" in str(caught.value)


def test_notes_say_what_to_create_and_to_register_for_the_server(chart: helm_python.Chart) -> None:
    assert "server" not in notes(chart).replace("API server", "")
    unsigned = notes(chart, {"server": {"url": URL}})
    assert "WARNING: server.tokenSecret.name is not set" in unsigned
    assert "signed with an empty token" in unsigned
    assert "callback" not in unsigned
    assert "All its callbacks are refused" in notes(chart, {"server": {"url": URL, "callbacks": {"enabled": True}}})

    signed = notes(chart, {"server": CALLBACKS})
    assert "WARNING" not in signed
    assert "Secret altershield-server" in signed
    callback = f"{RELEASE}-callbacks.{SYSTEM_NAMESPACE}.svc:8090/openapi/altershield/callback"
    assert f"\n  https://{callback}\n" in signed
    assert "ca.crt in the Secret altershield-tls" in signed
    assert "Your certificate" not in signed
    provided = notes(chart, {"server": CALLBACKS, "certificates": {"mode": "secret"}})
    assert f"for the name {RELEASE}-callbacks.{SYSTEM_NAMESPACE}.svc." in provided
    plain = notes(chart, {"server": {**CALLBACKS, "callbacks": {"enabled": True, "tls": False}}})
    assert f"\n  http://{callback}\n" in plain
    assert "must trust" not in plain


def test_callback_port_of_checks_needs_no_server(chart: helm_python.Chart) -> None:
    server: Object = {"callbacks": {"enabled": True}}
    found = options(chart, server)
    assert found == ServerOptions(
        callback_port=8090,
        callback_url=f"https://{RELEASE}-callbacks.{SYSTEM_NAMESPACE}.svc:8090",
        callback_tls_cert_file=found.callback_tls_cert_file,
        callback_tls_private_key_file=found.callback_tls_private_key_file,
    )
    assert str(found.callback_tls_cert_file) == "/certificates/tls.crt"
    assert server_settings(found) is None
    assert len(callback_services(rendered(chart, {"server": server}))) == 1
    assert "/openapi/altershield/checks/callback" in notes(chart, {"server": server})


@pytest.mark.parametrize("url", ["https://releases.example.com", "http://10.0.0.1:8080/path/"])
def test_receivers_of_checks_get_the_url_of_the_chart(chart: helm_python.Chart, url: str) -> None:
    found = options(chart, {"callbacks": {"enabled": True, "tls": False, "url": url}})
    assert callback_url(found) == url.rstrip("/")
