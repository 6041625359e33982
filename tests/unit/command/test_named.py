"""Commands about one workload or pod take TYPE/NAME and TYPE NAME."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from altershield.views.named import Named, named
from command.history.command import history
from command.protection.arguments import parse
from command.protection.changing import protect, unprotect
from command.requests.command import approve
from command.requests.why import why
from kube_base.errors import ReportedError, UsageError
from kube_sandbox.apiserver.server import ApiServer


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], []),
        (["web"], [("web", None, "web")]),
        (["deploy/web", "api"], [("deploy/web", "deploy", "web"), ("api", None, "api")]),
        (["deploy"], [("deploy", "deploy", None)]),
        (["deploy", "web", "api"], [("web", "deploy", "web"), ("api", "deploy", "api")]),
        (["deploy", "deploy/web"], [("deploy", None, "deploy"), ("deploy/web", "deploy", "web")]),
        (["web", "deploy"], [("web", None, "web"), ("deploy", None, "deploy")]),
        (["/web"], [("/web", "", "web")]),
        (["deploy/"], [("deploy/", "deploy", "")]),
    ],
)
def test_type_before_names_is_the_type_of_all_names(
    arguments: Sequence[str], expected: list[tuple[str, str | None, str | None]]
) -> None:
    assert named(arguments, lambda word: word == "deploy") == [Named(*each) for each in expected]


@pytest.mark.parametrize("command", [history, protect, unprotect])
async def test_type_and_name_mean_the_same_as_with_a_slash(tmp_path: Path, command: Callable[..., None]) -> None:
    async with ApiServer() as api:
        (kubeconfig := tmp_path / "kubeconfig").write_text(api.kubeconfig())
        said = []
        for arguments in (["deploy/web"], ["deploy", "web"], ["Deployments.apps", "web"]):
            with pytest.raises(ReportedError) as raised:
                await asyncio.to_thread(command, arguments, kubeconfig=str(kubeconfig))
            said.append(str(raised.value))
    assert said == [said[0]] * 3
    assert "web" in said[0]


@pytest.mark.parametrize("command", [why, approve])
async def test_type_and_name_are_one_workload(command: Callable[..., None], tmp_path: Path) -> None:
    async with ApiServer() as api:
        (kubeconfig := tmp_path / "kubeconfig").write_text(api.kubeconfig())
        with pytest.raises(ReportedError, match="AlterShield is not installed in the cluster at "):
            await asyncio.to_thread(command, ["deploy", "web"], kubeconfig=str(kubeconfig))


@pytest.mark.parametrize("command", [why, history, approve])
@pytest.mark.parametrize("arguments", [["deploy"], ["deploy", "web", "api"], ["deploy/web", "deploy/api"]])
def test_command_about_one_workload_refuses_none_and_several(
    command: Callable[..., None], arguments: list[str]
) -> None:
    with pytest.raises(UsageError, match=r"^name one workload, as deploy/web or deploy web$"):
        command(arguments)


@pytest.mark.parametrize("arguments", [["pod"], ["po", "web-1", "web-2"], ["deploy/web", "pod/web-1"]])
def test_why_refuses_no_pod_and_several_pods(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^name one pod, as pod/web-1 or pod web-1$"):
        why(arguments)


@pytest.mark.parametrize("arguments", [["pod", "Web"], ["pod/Web"], ["pod/"]])
def test_name_that_no_pod_can_have_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="no pod can have the name"):
        why(arguments)


def test_protected_objects_of_a_type_are_listed_after_it() -> None:
    assert list(map(str, parse(["svc", "web", "api"]))) == ["service/web", "service/api"]
    assert list(map(str, parse(["deploy/web", "ns/shop"]))) == ["deployment.apps/web", "namespace/shop"]


@pytest.mark.parametrize("arguments", [["web"], ["deploy"], ["deploy/"], ["pod", "web"], ["deploy", ""]])
def test_object_that_cannot_be_protected_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot be protected; write TYPE/NAME or TYPE NAME, where TYPE is"):
        parse(arguments)
