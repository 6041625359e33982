"""Users with tokens: who they are, what they may do, and what follows when a token or a right is taken away."""

import base64
import contextlib
import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from conformance.manifests import Json, config_map, text
from support.kubectl import Kubectl
from support.polling import HANG, eventually

AUTHENTICATED = "system:authenticated"
AUDIENCES = ["https://kubernetes.default.svc.cluster.local"]
REVIEWS = "/apis/authentication.k8s.io/v1/"


class Server:
    """The API server of a kubeconfig, without its user."""

    def __init__(self, admin: Kubectl) -> None:
        config = json.loads(admin("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        cluster = config["clusters"][0]["cluster"]
        self._address = urlsplit(cluster["server"]).netloc
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)

    @contextlib.contextmanager
    def answer(
        self, method: str, path: str, authorization: str, body: Json | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"Authorization": authorization, "Content-Type": "application/json"}
        connection = http.client.HTTPSConnection(self._address, timeout=HANG, context=self._context)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            yield connection.getresponse()

    def status(self, path: str, token: str) -> int:
        with self.answer("GET", path, f"Bearer {token}") as answer:
            return answer.status

    def user(self, authorization: str) -> Json | int:
        """The user of an Authorization header, or the status of the refusal."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        with self.answer("POST", REVIEWS + "selfsubjectreviews", authorization, review) as answer:
            found: Json = json.loads(answer.read())
            return dict(found["status"]["userInfo"]) if answer.status == 201 else answer.status


@pytest.fixture(scope="module")
def server(space: Kubectl) -> Server:
    return Server(space)


@pytest.fixture(scope="module")
def with_token_file(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("the API server of --kubeconfig has no token file of the tests")


USERS: dict[str, Json] = {
    "ann-token": {"username": "ann", "uid": "ann-uid", "groups": ["developers", "approvers", AUTHENTICATED]},
    "bob-token": {"username": "bob", "groups": [AUTHENTICATED]},
    "twice-token": {"username": "second", "uid": "2", "groups": [AUTHENTICATED]},
    "nameless-token": {"uid": "7", "groups": [AUTHENTICATED]},
    "quoted-token": {"username": 'quo"ted, user', "uid": "8", "groups": ["one", AUTHENTICATED]},
    "in-group-token": {"username": "carl", "uid": "9", "groups": [AUTHENTICATED, "developers"]},
    "unknown-token": {"username": "dora", "uid": "10", "groups": ["system:unauthenticated"]},
    "anonymous-token": {"username": "system:anonymous", "uid": "11", "groups": ["friends"]},
    "no-group-token": {"username": "emil", "uid": "12", "groups": ["", AUTHENTICATED]},
    "root-token": {"username": "root", "uid": "13", "groups": ["system:masters", AUTHENTICATED]},
}


def reviewed(admin: Kubectl, **spec: object) -> Json:
    """The status of a TokenReview."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    found: Json = json.loads(admin("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))["status"]
    return found


@pytest.mark.usefixtures("with_token_file")
@pytest.mark.parametrize("token", USERS)
def test_user_of_a_token_is_that_of_the_token_file(space: Kubectl, server: Server, token: str) -> None:
    user = USERS[token]
    assert reviewed(space, token=token) == {"authenticated": True, "user": user, "audiences": AUDIENCES}
    assert server.user(f"Bearer {token}") == (user if AUTHENTICATED in user["groups"] else 403)


@pytest.mark.usefixtures("with_token_file")
def test_review_of_a_token_that_is_not_valid_has_no_user(space: Kubectl) -> None:
    refused = {"user": {}, "error": "invalid bearer token"}
    assert reviewed(space, token="ann-token", audiences=["other"]) == refused
    assert reviewed(space, token="no-token") == refused


@pytest.mark.usefixtures("with_token_file")
@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("bearer ann-token ", "ann"),
        ("Bearer ann-token more", "ann"),
        ("Bearer  ann-token", 403),
        ("Bearer", 403),
        ("Basic ann-token", 403),
        ("Bearer ann-toke", 401),
        ("Bearer Ann-token", 401),
    ],
)
def test_header_has_one_space_before_the_token(server: Server, header: str, name: object) -> None:
    user = server.user(header)
    assert (user["username"] if isinstance(user, dict) else user) == name


@pytest.mark.usefixtures("with_token_file")
@pytest.mark.parametrize("subject", ["--user=ann", "--group=approvers"])
def test_user_has_the_rights_of_bindings_and_no_others(space: Kubectl, server: Server, subject: str) -> None:
    path = f"/api/v1/namespaces/{space.namespace}/configmaps"
    assert server.status(path, "ann-token") == 403
    assert server.status("/api/v1/nodes", "root-token") == 200
    name = subject.rpartition("=")[2]
    space("create", "rolebinding", name, "--clusterrole=view", subject)
    eventually(lambda: server.status(path, "ann-token") == 200, "the binding to give rights")
    assert [server.status(path, "bob-token"), server.status("/api/v1/nodes", "ann-token")] == [403, 403]
    space("delete", "rolebinding", name)
    eventually(lambda: server.status(path, "ann-token") == 403, "the rights to end")


@pytest.mark.parametrize(("kind", "status"), [("serviceaccount", 401), ("rolebinding", 403)])
def test_watch_outlives_the_token_and_the_right(space: Kubectl, server: Server, kind: str, status: int) -> None:
    name = f"of-{kind}"
    space("create", "serviceaccount", name)
    space("create", "rolebinding", name, "--clusterrole=view", f"--serviceaccount={space.namespace}:{name}")
    token = space("create", "token", name).strip()
    path = f"/api/v1/namespaces/{space.namespace}/configmaps"
    eventually(lambda: server.status(path, token) == 200, "the binding to give rights")
    with server.answer("GET", f"{path}?watch=true&fieldSelector=metadata.name={name}", f"Bearer {token}") as watch:
        assert watch.status == 200
        space("delete", kind, name)
        eventually(lambda: server.status(path, token) == status, "the next request to be refused")
        space("create", "-f", "-", stdin=text(config_map(name)))
        event = json.loads(watch.readline())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)


@pytest.mark.usefixtures("with_token_file")
@pytest.mark.parametrize(
    "content", ["s3cret,ann\n", 's3cret,ann,1, "a,b"\n', 's3cret,ann,1,"a\n', '"s3cret"x,ann,1\n', None]
)
def test_invalid_token_file_is_refused(tmp_path: Path, content: str | None) -> None:
    tokens = tmp_path / "tokens.csv"
    if content is not None:
        tokens.write_text(content)
    command = [sys.executable, "-m", "kube_sandbox", "--output", str(tmp_path / "kubeconfig")]
    done = subprocess.run(
        [*command, "--token-auth-file", str(tokens)], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("kube_sandbox: ")
    assert "s3cret" not in line
