"""The commands of the pages that `test_blocks` does not run: those in sentences, and those in blocks that say why."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from command.app import command_line
from tests.docs.helm import command_parser
from tests.docs.pages import NOT_RUN, PAGES, ROOT, Block, blocks, shown

UNTRIED = {
    "for you to fill in": [
        "altershield breaker",
        "altershield notify",
        "altershield repair",
        "altershield unfreeze",
        "aws",
        "curl",
        "helm install",
        "helm test",
        "helm upgrade",
        "kubectl apply",
        "kubectl create",
        "kubectl delete",
        "kubectl exec",
        "kubectl get",
        "kubectl label",
        "kubectl patch",
        "kubectl rollout",
        "kubectl wait",
    ],
    "it asks": ["altershield uninstall"],
    "it is this test suite": [
        "git clone",
        "make bench",
        "make demo",
        "make mutants",
        "make structure",
        "make test",
        "pytest",
    ],
    "needs API servers of yours": ["helm upgrade", "install", "kubectl create", "kubectl delete", "kubectl rollout"],
    "needs Argo CD": ["argocd app", "kubectl patch"],
    "needs Flux": ["flux suspend"],
    "needs a published release": [
        "cosign verify",
        "cosign verify-blob",
        "docker buildx",
        "gh attestation",
        "git checkout",
        "make package",
        "sha256sum",
    ],
    "needs an image registry": ["docker build", "docker push"],
    "needs cert-manager": ["helm upgrade", "kubectl describe", "kubectl logs"],
    "needs krew": ["kubectl krew"],
    "needs kubeadm": ["kubeadm init", "kubectl edit", "kubectl get"],
    "needs the registry of packages": ["make licenses", "make lock", "make sbom"],
    "needs wrk": ["make bench", "python bench"],
    "takes minutes": ["pytest"],
    "the sandbox runs no containers": [
        "kubectl create",
        "kubectl exec",
        "kubectl get",
        "kubectl logs",
        "kubectl port-forward",
        "kubectl rollout",
        "kubectl run",
        "kubectl wait",
    ],
}
"""The commands of the blocks that are not run, by the reason, which `NOT_RUN` explains."""

_NO_PROGRAM = ("cd", "do", "done", "echo", "for")
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(altershield [^`]+)`")
_KUBECTL = re.compile(r"`(kubectl (?!altershield)[^`]+)`")
HISTORY = ROOT / "CHANGELOG.md"


def lines(block: Block) -> Iterator[str]:
    """The commands of a block, each as one line."""
    texts = [each.command for each in shown(block.text)] if block.language == "console" else [block.text]
    for line in "\n".join(texts).replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def named(line: str) -> str:
    """The program and its subcommand. Empty if the line runs none."""
    words = shlex.split(line, comments=True)
    while words and ("=" in words[0] or words[0] == "sudo"):
        words.pop(0)
    if not words or words[0] in _NO_PROGRAM or re.match(r"\w+=\$\(", line):
        return ""
    program, *rest = words
    while rest and rest[0] in ("-n", "-m", "--namespace"):
        rest = rest[2:] if rest[0] != "-m" else rest[1:]
    verb = rest[0] if rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]) else ""
    return f"{Path(program).name} {verb}".strip()


def untried() -> Iterator[tuple[str, str]]:
    """The reason and the line of each command that is not run."""
    for page in PAGES:
        for block in blocks(page.read_text()):
            if block.not_run and block.language in ("sh", "console"):
                for line in lines(block):
                    yield block.not_run, line


def test_commands_that_are_not_run_are_listed_with_the_reason() -> None:
    found: dict[str, set[str]] = {}
    for reason, line in untried():
        if name := named(line):
            found.setdefault(reason, set()).add(name)
    assert {reason: sorted(names) for reason, names in sorted(found.items())} == UNTRIED
    assert sorted(UNTRIED) == sorted(NOT_RUN), "a reason that no block has"


def verbs() -> Iterator[tuple[str, str]]:
    """The page and the text of each command `altershield` that no test runs."""
    for page in PAGES:
        if page != HISTORY and "reference" not in page.parts:
            for text in _INLINE.findall(_FENCED.sub("", page.read_text())):
                yield page.name, " ".join(text.split())
            for block in blocks(page.read_text()):
                if block.not_run and block.language in ("sh", "console"):
                    yield from ((page.name, line) for line in lines(block) if named(line).startswith("altershield"))


@pytest.mark.parametrize("text", sorted({text for _, text in verbs()}))
def test_command_exists_with_its_options(text: str) -> None:
    _, *words = shlex.split(text.replace(".venv/bin/", "").replace("\\|", "|").translate({ord(c): " " for c in "[]…"}))
    command: object = typer.main.get_command(command_line())
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        assert words[0] in command.commands, text
        command = command.commands[words.pop(0)]
    assert isinstance(command, TyperCommand | TyperGroup)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "--version"}
    assert [word for word in words if word.startswith("-") and word.partition("=")[0] not in known] == []


def of_kubectl() -> set[str]:
    """The commands `kubectl` in sentences."""
    texts = [page.read_text() for page in PAGES if page != HISTORY and "reference" not in page.parts]
    return {" ".join(found.split()) for text in texts for found in _KUBECTL.findall(_FENCED.sub("", text))}


@pytest.mark.parametrize("text", sorted(of_kubectl()))
def test_kubectl_has_the_command_and_its_options(text: str, has_kubectl: None) -> None:
    words = shlex.split(text)[1:]
    if words[0] == "-n":
        words = words[2:]
    verb = words[: 2 if words[0] in ("rollout", "auth") else 1]
    done = subprocess.run(["kubectl", *verb, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    long = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert {option for option in long if f"{option}=" not in done.stdout} == set()


@pytest.mark.parametrize("line", sorted({line for _, line in untried() if named(line).startswith("helm ")}))
def test_helm_command_that_is_not_run_has_known_options(line: str) -> None:
    command_parser().parse_args(shlex.split(line)[1:])
