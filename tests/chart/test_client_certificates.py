"""The client certificate of API servers, with the commands and files of docs/callers.md.

Each test has an API server of its own: kube-apiserver of KUBEBUILDER_ASSETS, or the sandbox. A cluster of --kubeconfig
cannot be configured so.
"""

import contextlib
import http.client
import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from altershield.admission.webhooks import VALIDATING
from altershield.api.names import SYSTEM_NAMESPACE
from bench.harness.deployments import deployment
from kube_base.resources import DEPLOYMENTS
from tests.chart.pod import Command, here, is_ready, ports_for, process
from tests.chart.rendering import RELEASE, containers
from tests.docs.pages import ROOT, Block, blocks
from tests.e2e.sleep import VERSION
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.processes import run, running, wait_for_line

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

FOLDER = "/etc/kubernetes/webhook-client"
NAME = "kube-apiserver"
PAGE = [*blocks((ROOT / "docs" / "callers.md").read_text())]


def block(*parts: str) -> Block:
    """The block of the page that contains all of these texts."""
    (found,) = [each for each in PAGE if all(part in each.text for part in parts)]
    return found


CERTIFICATE = block("openssl req -x509")
FILES = block("sudo install -d")
ADMISSION = block("kind: AdmissionConfiguration")
KUBECONFIG = block("kind: Config\n")
SWITCH_ON = block("create configmap api-servers")
TRIAL = block("create deployment trial")
SWITCH_OFF = block("delete configmap api-servers")


@dataclass(frozen=True)
class Machine:
    """A control plane node with an API server, and the shell of an administrator."""

    directory: Path
    kubeconfig: Path

    @property
    def folder(self) -> Path:
        """It takes the place of the page's FOLDER."""
        return self.directory / "webhook-client"

    def shell(self, block: Block) -> str:
        """The output of the commands of a block."""
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(self.directory / "bin"), os.environ["PATH"]]),
            "KUBECONFIG": str(self.kubeconfig),
        }
        text = block.text.replace("sudo ", "").replace(FOLDER, str(self.folder)).replace("https://NODE:6443", self.api)
        done = run(["bash", "-euc", text], environment=environment, directory=self.directory)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def new_certificate(self) -> None:
        """Make a CA and a certificate of it, and put the files where the API server finds them."""
        self.shell(CERTIFICATE)
        for name, file in (("admission.yaml", ADMISSION), ("client.kubeconfig", KUBECONFIG)):
            (self.directory / name).write_text(file.text.replace(FOLDER, str(self.folder)))
        self.shell(FILES)

    @property
    def api(self) -> str:
        if not self.kubeconfig.exists():
            return ""
        url: str = yaml.safe_load(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        return url

    @contextlib.contextmanager
    def api_server(self, *, configured: bool) -> Iterator[None]:
        """Serve the API, with the files of the page or without."""
        log = self.directory / "api.log"
        options = ["--admission-control-config-file", str(self.folder / "admission.yaml")] if configured else []
        program = [sys.executable, "-m", "kube_sandbox", "--output", str(self.kubeconfig), *options]
        with running(program, log) as process:
            wait_for_line(process, log, "Serving ")
            yield


@pytest.fixture
def machine(tmp_path: Path, has_kubectl: None) -> Machine:
    directory = tmp_path / "machine"
    (directory / "bin").mkdir(parents=True)
    (directory / "charts").symlink_to(ROOT / "charts")
    helm = directory / "bin" / "helm"
    helm.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.docs.helm "$@"\n')
    helm.chmod(0o755)
    return Machine(directory, directory / "admin.kubeconfig")


class Gatekeeper:
    """The release's gatekeeper and certgen as processes of this machine, behind the release's Service."""

    def __init__(self, system: Kubectl, directory: Path) -> None:
        directory.mkdir()
        self.address = own_address()
        self._system = system
        self._directory = directory
        self._ports = ports_for(system.json("deployment", RELEASE))
        self.port = self._ports["webhook"]

    def command(self) -> Command:
        """The command in the release's Deployment, with the ConfigMap mounted."""
        command = self._command("gatekeeper")
        ca = self._directory / "clients.crt"
        arguments = [part.replace("/clients/ca.crt", str(ca)) for part in command.arguments]
        if arguments != command.arguments:
            self.mount(self._system.json("configmap", "api-servers")["data"]["ca.crt"])
        return Command([*arguments, "--host="], command.variables)

    def mount(self, ca: str) -> None:
        """As the kubelet does when the ConfigMap has changed."""
        (self._directory / "clients.crt").write_text(ca)

    def _command(self, name: str) -> Command:
        return here(containers(self._system.json("deployment", RELEASE))[name], self._ports, self._directory)

    @contextlib.contextmanager
    def certgen(self) -> Iterator[None]:
        with process(self._command("certgen"), self._system.kubeconfig, self._directory / "certgen.log"):
            yield

    @contextlib.contextmanager
    def running(self, command: Command) -> Iterator[None]:
        log = self._directory / "gatekeeper.log"
        with process(command, self._system.kubeconfig, log):
            try:
                eventually(lambda: is_ready(self._ports["gatekeeper"]), "the gatekeeper to be ready")
                yield
            finally:
                print(log.read_text()[-4000:])

    def serve(self) -> None:
        """Lead the Service to this machine. Simulated nodes run no processes, so their pods must not be endpoints."""
        self._system("delete", "deployment,service", RELEASE)
        ports = [{"name": "webhook", "port": self.port, "protocol": "TCP"}]
        service = {"ports": [{"name": "webhook", "port": 443, "targetPort": "webhook"}]}  # no selector: no controller
        endpoints = {"subsets": [{"addresses": [{"ip": self.address}], "ports": ports}]}
        of_service = {"kubernetes.io/service-name": RELEASE}
        endpoint_slice = {"addressType": "IPv4", "endpoints": [{"addresses": [self.address]}], "ports": ports}
        for version, kind, labels, content in (
            ("v1", "Service", {}, {"spec": service}),
            ("v1", "Endpoints", {}, endpoints),  # before Kubernetes 1.34, API servers read these
            ("discovery.k8s.io/v1", "EndpointSlice", of_service, endpoint_slice),
        ):
            metadata = {"name": RELEASE, "labels": labels}
            obj = {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
            self._system("apply", "-f", "-", stdin=json.dumps(obj))

    def answer(self, certificate: Path | None = None) -> tuple[int, str]:
        """The status and the answer to a review that somebody sends, with a certificate and its key or without.
        SSLError if the gatekeeper ends the connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        connection = http.client.HTTPSConnection(self.address, self.port, context=context, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", VALIDATE, "{}", {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


def own_address() -> str:
    """An IPv4 address of this machine outside of loopback, because API servers refuse loopback as endpoint."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("203.0.113.1", 9))  # sends nothing
        address: str = probe.getsockname()[0]
        return address


def block_of(command: str) -> Block:
    return Block(0, "sh", command, "", "")


VALIDATE = next(webhook.path for webhook in VALIDATING if webhook.name == "vdeployment.kb.io")
INSTALL = block_of(f"helm install {RELEASE} charts/altershield -n {SYSTEM_NAMESPACE} --create-namespace")


def tried(shop: Kubectl) -> tuple[int, dict[str, Any]]:
    """The status and the answer of the API server to a release that is not stored."""
    return shop.create(DEPLOYMENTS, json.dumps(deployment("trial")), dry_run=True)


def decided(shop: Kubectl) -> bool:
    """Whether the API server admits a release with the labels of the gatekeeper."""
    status, answer = tried(shop)
    return status == 201 and VERSION in answer["metadata"].get("labels", {})


def refused(shop: Kubectl, because: str) -> bool:
    """Whether the API server refuses a release with this text."""
    status, answer = tried(shop)
    return status >= 400 and because in answer["message"]


@pytest.fixture
def installed(request: pytest.FixtureRequest, machine: Machine) -> Iterator[tuple[Gatekeeper, Kubectl]]:
    """The release on an API server, which has the files of the page unless `request.param` is false, and kubectl in a
    governed namespace."""
    machine.new_certificate()
    with machine.api_server(configured=getattr(request, "param", True)):
        machine.shell(INSTALL)
        gatekeeper = Gatekeeper(Kubectl(machine.kubeconfig, SYSTEM_NAMESPACE), machine.directory / "pod")
        shop = Kubectl(machine.kubeconfig, "shop")
        shop("create", "namespace", "shop")
        shop("label", "namespace", "shop", "admission-webhook-altershield=enabled")
        yield gatekeeper, shop


def test_page_restricts_the_gatekeeper_to_api_servers_and_refuses_no_release(
    machine: Machine, installed: tuple[Gatekeeper, Kubectl]
) -> None:
    gatekeeper, shop = installed
    before = gatekeeper.command()
    machine.shell(SWITCH_ON)
    after = gatekeeper.command()
    assert f"--client-name={NAME}" in after.arguments
    machine.shell(SWITCH_OFF)
    assert gatekeeper.command() == before
    other = machine.directory / "other.crt"
    signed(machine, "kubelet", other)
    with gatekeeper.certgen():
        gatekeeper.serve()
        with gatekeeper.running(before):
            eventually(lambda: decided(shop), "a decision while the gatekeeper asks for no certificate")
            assert gatekeeper.answer()[0] == 400, "any client gets an answer to its request, which is not a review"
        with gatekeeper.running(after):
            eventually(lambda: decided(shop), "a decision with the certificate")
            assert "created" in machine.shell(TRIAL)
            with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
                gatekeeper.answer()
            status, text = gatekeeper.answer(other)
            assert (status, f"reviews are taken from {NAME} alone" in text) == (403, True)
        use_a_new_certificate_of_a_new_ca_without_a_restart_of_the_api_server(machine, gatekeeper, after, shop)


def use_a_new_certificate_of_a_new_ca_without_a_restart_of_the_api_server(
    machine: Machine, gatekeeper: Gatekeeper, command: Command, shop: Kubectl
) -> None:
    ca = machine.directory / "ca.crt"
    old = ca.read_text()
    machine.new_certificate()
    time.sleep(1.5)  # an API server reads the files at most once a second
    with gatekeeper.running(command):  # a new process, so that the API server opens a new connection
        eventually(lambda: refused(shop, "tls: unknown certificate authority"), "the reason in the refusal")
        gatekeeper.mount(old + ca.read_text())
        eventually(lambda: decided(shop), "a decision with the new certificate")
    gatekeeper.mount(ca.read_text())
    with gatekeeper.running(command):
        eventually(lambda: decided(shop), "a decision without the old CA")


@pytest.mark.parametrize("installed", [False], indirect=True, ids=["without the certificate"])
def test_release_is_refused_with_the_reason_by_an_api_server_without_the_certificate(
    machine: Machine, installed: tuple[Gatekeeper, Kubectl]
) -> None:
    gatekeeper, shop = installed
    machine.shell(SWITCH_ON)
    command = gatekeeper.command()
    with gatekeeper.certgen():
        gatekeeper.serve()
        with gatekeeper.running(command):
            eventually(lambda: refused(shop, "remote error: tls: certificate required"), "the reason in the refusal")


def signed(machine: Machine, name: str, certificate: Path) -> None:
    """A certificate of the CA of the page, with another common name."""
    commands = CERTIFICATE.text.splitlines(keepends=True)
    kept = "".join(commands[2:]).replace(f"/CN={NAME}", f"/CN={name}").replace("client.", f"{certificate.stem}.")
    machine.shell(block_of(kept))
