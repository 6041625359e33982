"""The API server: it serves HTTPS on loopback and keeps all objects in memory.

In a test or a program:

    async with ApiServer() as api:
        Path("kubeconfig").write_text(api.kubeconfig())            # for an administrator
        token = api.add_token("alice", groups=["developers"])      # for a user who needs RBAC roles
        api.url, api.ca_pem, api.kubeconfig(token)
"""

import asyncio
import base64
import datetime
import secrets
import ssl
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import unquote

import orjson
import yaml
from aiohttp import web
from aiohttp.typedefs import Middleware
from multidict import CIMultiDict, MultiDict

from kube_base.pki import Authority
from kube_sandbox.apiserver import routing
from kube_sandbox.apiserver.admission.webhooks import client_certificates
from kube_sandbox.apiserver.admission.webhooks.call import Services
from kube_sandbox.apiserver.admission.webhooks.dispatch import Webhooks
from kube_sandbox.apiserver.attributes import Attributes, Object, User
from kube_sandbox.apiserver.auth import default_roles, token_files
from kube_sandbox.apiserver.auth.access_reviews import AccessReviews
from kube_sandbox.apiserver.auth.authentication import Authenticator, administrator
from kube_sandbox.apiserver.auth.authorization import Authorizer
from kube_sandbox.apiserver.auth.role_aggregation import RoleAggregation
from kube_sandbox.apiserver.auth.tokens import ServiceAccountTokens
from kube_sandbox.apiserver.context import Api
from kube_sandbox.apiserver.http import codec
from kube_sandbox.apiserver.http.local import LocalRequest
from kube_sandbox.apiserver.http.requests import MAX_BODY
from kube_sandbox.apiserver.storage import strategies
from kube_sandbox.apiserver.storage.crds import CustomResources
from kube_sandbox.apiserver.storage.registry import Registry
from kube_sandbox.apiserver.storage.store import Change, Storage, Store

_HOST = "127.0.0.1"
_NAMES = (_HOST, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFETIME = datetime.timedelta(days=3650)
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class ApiServer:
    """One API server with its own store. Call `start` and `stop`, or use `async with`.

    `port` 0 selects a free port. `history` is the number of changes of each type that watches and paged lists can read.
    `bookmark_interval` is the number of seconds between the bookmarks of a watch. `middlewares` are aiohttp
    middlewares; tests use them to make requests fail. `services` returns the address of a webhook's Service; without
    it, the server reads the Service's EndpointSlices and Endpoints. `admission_config` is the file with an
    AdmissionConfiguration, from which the server takes the client certificates for webhooks. `token_auth_file` is the
    file with the tokens of users, as for kube-apiserver. Without `tls`, it serves HTTP: for tests that open hundreds of
    connections, because a handshake takes as long as several requests.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        history: int = 5000,
        bookmark_interval: float = 60.0,
        middlewares: Sequence[Middleware] = (),
        services: Services | None = None,
        admission_config: Path | None = None,
        token_auth_file: Path | None = None,
        tls: bool = True,
    ) -> None:
        self._port = port
        self._tls = tls
        self._middlewares = middlewares
        self._authority = Authority.create("kube-sandbox-ca", lifetime=_LIFETIME)
        self._tokens = token_files.load(token_auth_file) if token_auth_file else {}
        store, registry = Store(history), Registry()
        authorizer = Authorizer(store)
        accounts = ServiceAccountTokens(store)
        authenticator = Authenticator(self._tokens, accounts)
        self.api = Api(
            store=store,
            registry=registry,
            authenticator=authenticator,
            authorizer=authorizer,
            reviews=AccessReviews(authenticator, authorizer),
            webhooks=Webhooks(
                store,
                self._normalize,
                authorizer=authorizer,
                services=services,
                certificates=client_certificates.load(admission_config) if admission_config else None,
            ),
            tokens=accounts,
            crds=CustomResources(store, registry),
            bookmark_interval=bookmark_interval,
        )
        self._aggregation = RoleAggregation(store)
        store.observer = self._on_change
        self._admin = self.add_user(administrator())
        self._runner: web.AppRunner | None = None
        self._create_initial_objects()

    @property
    def store(self) -> Store:
        return self.api.store

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{_HOST}:{self._port}"

    @property
    def ca_pem(self) -> str:
        """The certificate (PEM) of the CA that signs the server's certificate."""
        return self._authority.pair.certificate.decode()

    def add_token(self, user: str, *, groups: Iterable[str] = ()) -> str:
        """A bearer token for a user in these groups."""
        return self.add_user(User(user, tuple(groups)))

    def add_user(self, user: User) -> str:
        """A bearer token for this user."""
        token = secrets.token_urlsafe(24)
        self._tokens[token] = user
        return token

    def kubeconfig(self, token: str | None = None, *, namespace: str = "default") -> str:
        """A kubeconfig (YAML) with a token. The default token belongs to an administrator."""
        ca = {"certificate-authority-data": base64.b64encode(self.ca_pem.encode()).decode()} if self._tls else {}
        name = "kube-sandbox"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url, **ca}}],
            "users": [{"name": name, "user": {"token": token or self._admin}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
            "current-context": name,
        }
        return yaml.safe_dump(config, sort_keys=False)

    async def start(self) -> None:
        app = web.Application(middlewares=self._middlewares, client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=3600)
        await self._runner.setup()
        site = web.TCPSite(self._runner, _HOST, self._port, ssl_context=self._tls_context() if self._tls else None)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """End all watches and close the listener. The store keeps its objects."""
        self.store.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        await self.api.webhooks.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        return await routing.handle(self.api, request)

    async def send(
        self, method: str, path: str, query: Mapping[str, str], headers: CIMultiDict[str], body: bytes | None
    ) -> tuple[int, bytes]:
        """Serve a request of this process, without a connection and the middlewares. Returns the status and the body of
        the response."""
        request = LocalRequest(method, unquote(path), MultiDict(query), headers, body or b"")
        response = await routing.handle(self.api, request)
        await asyncio.sleep(0)  # as a connection does, this lets other tasks run
        answer = response.body if isinstance(response, web.Response) else None
        return response.status, answer if isinstance(answer, bytes) else b""

    def _on_change(self, storage: Storage, change: Change) -> None:
        self.api.crds.on_change(storage, change)
        self._aggregation.on_change(storage, change)

    def _normalize(self, attributes: Attributes, obj: Object) -> Object:
        """Prune and default an object after the patch of a webhook."""
        resource = self.api.registry.find(attributes.group, attributes.version, attributes.plural)
        if resource is None or (attributes.subresource and attributes.kind != resource.kind):
            return obj
        return codec.normalized(resource, obj)[0]

    def _tls_context(self) -> ssl.SSLContext:
        pair = self._authority.issue("kube-apiserver", hosts=_NAMES, lifetime=_LIFETIME)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.ca_pem)
        with tempfile.TemporaryDirectory() as directory:  # the ssl module reads keys only from files
            certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
            certificate.write_bytes(pair.certificate)
            key.touch(mode=0o600)
            key.write_bytes(pair.key)
            context.load_cert_chain(certificate, key)
        return context

    def _create_initial_objects(self) -> None:
        """Create the objects of a new cluster: four namespaces, the default roles and their bindings."""
        for name in _NAMESPACES:
            self._add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in default_roles.objects():
            self._add(orjson.loads(orjson.dumps(obj)))

    def _add(self, obj: Object) -> None:
        resource = self.api.registry.of_kind(obj["apiVersion"], obj["kind"])
        if resource is None:
            raise LookupError(f"{obj['kind']} of {obj['apiVersion']} is not served")
        normal = codec.normalized(resource, obj)[0]
        strategies.prepare_create(resource, normal)
        self.store.create(resource.storage, normal)
