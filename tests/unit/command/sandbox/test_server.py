"""`altershield sandbox --altershield-server`."""

import functools
import json
import re
import stat
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import main
from command.sandbox.server import CALLBACK, running_server
from kube_base.errors import UsageError
from reconciler.server.server_options import ServerOptions
from tests.support.processes import call, command, wait_for_line


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The kubeconfig and the token file of a sandbox."""
    return tmp_path / "kubeconfig", tmp_path / "kubeconfig.server-token"


@pytest.fixture
def printed(tmp_path: Path, files: tuple[Path, Path]) -> Iterator[str]:
    """The log of a sandbox with an AlterShield server, which runs during the test."""
    log = tmp_path / "sandbox.log"
    with command("sandbox", "--altershield-server", "--nodes=0", "--output", str(files[0]), log=log) as process:
        wait_for_line(process, log, "Serving ")
        yield log.read_text()


def test_sandbox_prints_the_options_for_its_altershield_server(printed: str, files: tuple[Path, Path]) -> None:
    kubeconfig, token_file = files
    found = re.search(r"listens at (\S+)\. Its platform is kubernetes, with the token (\S{32})\.", printed)
    assert found is not None, printed
    url, token = found.groups()
    options = f"--server-url {url} --server-platform kubernetes --server-token-file {token_file} --callback-port 8090"
    assert options in printed
    assert token_file.read_text() == token
    assert stat.S_IMODE(token_file.stat().st_mode) == stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    with urllib.request.urlopen(f"{url}/sandbox/script") as answer:  # noqa: S310  (our own URL)
        assert json.load(answer)["post"]["verdict"] == "pass"


async def test_printed_options_are_options_of_the_reconciler(tmp_path: Path) -> None:
    known = {f"--{name.replace('_', '-')}" for name in ServerOptions.__dataclass_fields__}
    async with running_server(tmp_path / "token", CALLBACK) as text:
        token = (tmp_path / "token").read_text()  # it may contain "--", too
        assert {*re.findall(r"--[a-z-]+", text.replace(token, ""))} <= known
    assert not (tmp_path / "token").exists()


@pytest.mark.parametrize(
    ("callback", "option"),
    [
        ("http://localhost:9000/callback", "--callback-port 9000"),
        ("http://[::1]:9000/callback", "--callback-port 9000"),
        ("http://127.0.0.1/callback", None),
        ("https://callbacks.example.com:9000/callback", None),
        ("https://10.0.0.7:9000/callback", None),
    ],
)
async def test_callback_port_is_an_option_if_the_callback_is_on_this_machine(
    tmp_path: Path, callback: str, option: str | None
) -> None:
    async with running_server(tmp_path / "token", callback) as text:
        assert ("--callback-port" in text) is (option is not None)
        assert option is None or option in text


@pytest.mark.parametrize(
    "callback", ["", "callback", "ftp://host/x", "http://:80/x", "http://host:port/x", "http://[/x"]
)
async def test_callback_that_is_no_url_is_a_usage_error(tmp_path: Path, callback: str) -> None:
    with pytest.raises(UsageError, match="--server-callback"):
        await running_server(tmp_path / "token", callback).__aenter__()


def test_wrong_callback_prints_one_sentence_and_exits_with_2(capfd: pytest.CaptureFixture[str]) -> None:
    run = functools.partial(call, main, "altershield", capture=capfd)
    done = run("sandbox", "--altershield-server", "--server-callback=nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: --server-callback 'nowhere' is not a URL such as http://")
