"""The options for an AlterShield server."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from altershield.process.parameters import with_options
from altershield.process.startup import single
from kube_base.errors import UsageError
from reconciler.server.server_options import ServerOptions, server_settings
from reconciler.server.server_settings import Settings


def parsed(arguments: list[str], environment: dict[str, str] | None = None) -> ServerOptions:
    """The options that a command gets."""
    found: list[ServerOptions] = []
    result = CliRunner().invoke(single(with_options(ServerOptions)(found.append)), arguments, env=environment or {})
    assert result.exit_code == 0, result.output
    return found[0]


def test_default_is_no_server() -> None:
    assert parsed([]) == ServerOptions()
    assert server_settings(ServerOptions()) is None


def test_a_url_is_enough() -> None:
    found = server_settings(parsed(["--server-url", "http://altershield:8080/"]))
    assert found == Settings(
        url="http://altershield:8080",
        platform="kubernetes",
        tenant="default",
        scene="com.alipay.altershield.kubernetes.rollingupdate",
        phase="prod_phase",
        token_file=None,
    )


def test_each_option_has_an_environment_variable(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    values = {
        "SERVER_URL": "https://altershield.example/base/",
        "SERVER_PLATFORM": "p",
        "SERVER_TENANT": "t",
        "SERVER_SCENE": "s",
        "SERVER_PHASE": "GRAY_PHASE",
        "SERVER_TOKEN_FILE": str(token),
        "CALLBACK_PORT": "9444",
    }
    options = parsed([], {f"ALTERSHIELD_{name}": value for name, value in values.items()})
    assert options.callback_port == 9444
    assert server_settings(options) == Settings(
        url="https://altershield.example/base",
        platform="p",
        tenant="t",
        scene="s",
        phase="gray_phase",
        token_file=token,
    )


def test_arguments_give_the_same_options_again(tmp_path: Path) -> None:
    options = ServerOptions(server_url="http://a", server_token_file=tmp_path / "token", callback_port=1)
    assert parsed(options.server_arguments) == options
    assert parsed(ServerOptions().server_arguments) == ServerOptions()


@pytest.mark.parametrize(
    "url",
    [
        "altershield:8080",
        "altershield",
        "ftp://altershield",
        "http://",
        "http:///path",
        "http://a:port",
        "http://a:99999",
        "http://[::1",
        "http://a b",
        "http://a\r\nHost: b",
        "http://a?x=1",
        "http://a#x",
    ],
)
def test_url_that_is_not_http_or_https_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="--server-url"):
        server_settings(ServerOptions(server_url=url))


@pytest.mark.parametrize("url", ["http://jane:hunter2@a", "http://jane@a", "https://:hunter2@a", "http://@a"])
def test_url_with_user_information_is_a_usage_error_without_it(url: str) -> None:
    with pytest.raises(UsageError, match="must not contain a user") as caught:
        server_settings(ServerOptions(server_url=url))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (ServerOptions(server_url="http://a", server_tenant=""), "--server-tenant"),
        (ServerOptions(server_url="http://a", server_tenant=" "), "--server-tenant"),
        (ServerOptions(server_url="http://a", server_tenant="発" * 22), "--server-tenant"),
        (ServerOptions(server_url="http://a", server_platform=""), "--server-platform"),
        (ServerOptions(server_url="http://a", server_platform="a\nb"), "--server-platform"),
        (ServerOptions(server_url="http://a", server_platform="a" * 33), "--server-platform"),
        (ServerOptions(server_url="http://a", server_scene=""), "--server-scene"),
        (ServerOptions(server_url="http://a", server_scene="a,b"), "--server-scene"),
        (ServerOptions(server_url="http://a", server_scene="a" * 257), "--server-scene"),
        (ServerOptions(server_url="http://a", server_phase="production"), "--server-phase"),
        (ServerOptions(server_phase=""), "--server-phase"),
        (ServerOptions(callback_port=1, callback_url="releases.example.com"), "--callback-url"),
        (ServerOptions(callback_url="https://a/?b"), "--callback-url"),
        (ServerOptions(callback_tls_cert_file=Path("tls.crt")), "--callback-tls-private-key-file"),
    ],
)
def test_invalid_option_is_a_usage_error_with_its_name(options: ServerOptions, name: str) -> None:
    with pytest.raises(UsageError, match=name):
        server_settings(options)


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe", b"x" * 5000])
def test_token_file_without_a_token_is_a_usage_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="--server-token-file"):
        server_settings(ServerOptions(server_url="http://a", server_token_file=path))
