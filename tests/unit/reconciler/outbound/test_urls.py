"""Which URLs a tenant may name, and which addresses are never called."""

import ipaddress

import pytest

from kube_base.errors import UsageError
from reconciler.outbound.addresses import forbidden
from reconciler.outbound.check_options import CheckOptions
from reconciler.outbound.urls import allowed_hosts, parse, refusal

DEFAULT = allowed_hosts(CheckOptions().checks_allowed_hosts)
ALL = allowed_hosts(["*, 0.0.0.0/0", "::/0"])


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.shop.svc",
        "https://hooks.shop.svc:8443/verify?team=a",
        "HTTP://Hooks.Shop.SVC/",
        "http://hooks.shop.svc.cluster.local./x",
        "http://web-0.hooks.shop.svc",
        "http://my_hook.shop.svc?x",
    ],
)
def test_services_of_the_cluster_are_allowed_by_default(url: str) -> None:
    assert refusal(url, DEFAULT) == ""


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "http://hooks",
        "http://hooks.shop",  # may be a name of the Internet
        "http://svc",
        "http://evilsvc",
        "http://hooks.shop.svc.example.com",
        "http://10-0-0-1.shop.pod.cluster.local",  # CoreDNS answers with the address in the name
        "http://localhost",
        "http://10.1.2.3",
        "http://127.0.0.1",
        "http://[::1]",
        "http://metadata.google.internal",
        "http://instance-data.ec2.internal",
        "http://169.254.169.254/latest/meta-data",
    ],
)
def test_other_hosts_are_refused_by_default_with_the_option_to_set(url: str) -> None:
    assert "is not allowed; add it to --checks-allowed-hosts" in refusal(url, DEFAULT)


@pytest.mark.parametrize(
    "url",
    [
        "https://kubernetes",
        "https://kubernetes.default",
        "https://kubernetes.default.svc/api/v1/secrets",
        "https://KUBERNETES.default.svc.",
        "https://kubernetes.default.svc.cluster.local",
        "https://kubernetes.default.svc.corp.example",
        "https://172-18-0-2.kubernetes.default.svc.cluster.local:6443",  # an endpoint: a node of the control plane
    ],
)
def test_the_api_server_is_refused_even_if_every_host_is_allowed(url: str) -> None:
    assert "is the API server" in refusal(url, ALL)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.shop.svc",
        "//hooks.shop.svc",
        "ftp://hooks.shop.svc",
        "file:///etc/passwd",
        "unix:///run/containerd.sock",
        "gopher://hooks.shop.svc",
        "http://",
        "http:///x",
        "http:hooks.shop.svc",
        "http:/hooks.shop.svc",
        "http://user@hooks.shop.svc",
        "http://user:secret@hooks.shop.svc",
        "http://hooks.shop.svc@169.254.169.254",
        "http://169.254.169.254#@hooks.shop.svc",
        "http://169.254.169.254\\@hooks.shop.svc",
        "http://hooks.shop.svc#x",
        "http://hooks.shop.svc/a b",
        "http://hooks.shop.svc/\r\nX-Header: 1",
        "http://hooks.shop.svc/é",
        " http://hooks.shop.svc",
        "http://hooks.shop.svc\n",
        "http://hooks%2eshop.svc",
        "http://hooks。shop。svc",  # ideographic full stops
        "http://ⓗooks.shop.svc",
        "http://hooks..shop.svc",
        "http://.shop.svc",
        "http://-x.shop.svc",
        "http://hooks.shop.svc..",
        "http://*.svc",
        "http://hooks.shop.svc:",
        "http://hooks.shop.svc:0",
        "http://hooks.shop.svc:65536",
        "http://hooks.shop.svc:8080:80",
        "http://hooks.shop.svc:+80",
        "http://hooks.shop.svc:٨٠",
        "http://2130706433",  # 127.0.0.1 for the C library, as are all of the following
        "http://0x7f000001",
        "http://0x7f.0.0.1",
        "http://0177.0.0.1",
        "http://127.1",
        "http://127.0.1",
        "http://127.0.0.1.",
        "http://127.0.0.01",
        "http://0",
        "http://[127.0.0.1]",
        "http://[::1%25lo]",
        "http://[::ffff:127.0.0.1",
        "http://::1",
        "http://[fe80::1%eth0]",
        "http://hooks.shop.svc/" + "x" * 2048,
    ],
)
def test_a_url_that_parsers_may_read_differently_is_refused_even_if_every_host_is_allowed(url: str) -> None:
    assert refusal(url, ALL)
    assert "secret" not in refusal(url, ALL)


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        ("hooks.example.com", "http://hooks.example.com", "http://a.hooks.example.com"),
        ("*.example.com", "http://a.b.example.com", "http://example.com"),
        ("*", "http://example.com", "http://10.1.2.3"),
        ("10.1.2.3", "http://10.1.2.3", "http://10.1.2.4"),
        ("10.1.0.0/16", "http://10.1.200.1", "http://10.2.0.1"),
        ("[2001:db8::1]", "http://[2001:db8:0::1]", "http://[2001:db8::2]"),
        ("localhost", "http://localhost:8080", "http://127.0.0.1:8080"),
    ],
)
def test_pattern_allows_exactly_its_hosts(pattern: str, allowed: str, refused: str) -> None:
    hosts = allowed_hosts([pattern])
    assert refusal(allowed, hosts) == ""
    assert "is not allowed" in refusal(refused, hosts)


def test_patterns_may_be_separated_by_commas_or_repeated_and_none_allows_nothing() -> None:
    assert allowed_hosts(["a.svc, *.b.svc", "10.0.0.1"]) == allowed_hosts(["a.svc", "*.B.svc", "10.0.0.1/32"])
    assert refusal("http://hooks.shop.svc", allowed_hosts([""]))


@pytest.mark.parametrize(
    "pattern", ["http://a", "a:80", "*a", "a.*", "*.*", "10.1.2.3/8", "a b/c", "*.10.1.2.3", "a@b"]
)
def test_invalid_pattern_is_a_usage_error(pattern: str) -> None:
    with pytest.raises(UsageError, match="--checks-allowed-hosts"):
        allowed_hosts([pattern])


def test_default_ports_follow_from_the_scheme() -> None:
    assert [parse(url).port for url in ("http://a.svc", "https://a.svc", "https://a.svc:1")] == [80, 443, 1]


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200",
        "168.63.129.16", "192.0.0.192", "fec0::1",
        "127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "0.1.2.3", "::",  # noqa: S104
        "224.0.0.1", "ff02::1", "255.255.255.255",
        "240.0.0.1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::127.0.0.1", "::ffff:0:127.0.0.1",
        "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:a9fe:a9fe::1", "2002:7f00:1::",
        "2001:0:7f00:1::", "2001:0:a00:1::5601:5601",
    ],
)  # fmt: skip
def test_local_and_metadata_addresses_are_forbidden_in_each_form(address: str) -> None:
    assert forbidden(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["10.96.0.10", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:db8::1", "::ffff:10.0.0.1"]
)
def test_other_addresses_are_not_forbidden(address: str) -> None:
    assert forbidden(ipaddress.ip_address(address)) == ""


def test_loopback_is_allowed_only_where_it_is_named() -> None:
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert forbidden(ipaddress.ip_address(address), loopback=True) == ""
    assert forbidden(ipaddress.ip_address("169.254.169.254"), loopback=True)
    hosts = allowed_hosts(["localhost", "127.0.0.1", "::1", "*.svc", "hooks.local"])
    for url in ("http://localhost", "http://127.0.0.1", "http://[::1]"):
        assert hosts.allows_loopback(parse(url))
    for url in ("http://hooks.local", "http://x.svc", "http://127.0.0.2"):
        assert not hosts.allows_loopback(parse(url))
    assert not allowed_hosts(["127.0.0.0/8"]).allows_loopback(parse("http://127.0.0.1"))
    assert not allowed_hosts(["*"]).allows_loopback(parse("http://localhost"))
