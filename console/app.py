"""The HTTP application of the console: its addresses, and who gets an answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
from aiohttp import web

from altershield.api.names import is_name
from altershield.views.current_user import user_info
from altershield.views.names import short_version
from console import guard
from console.pages import attention, gates, history, workload
from console.sign_ins import SignIns
from console.texts import shown
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, KubernetesError, UnauthorizedError, UnreachableError
from kube_base.errors import ReportedError, UsageError

SIGN_IN = "/sign-in/"

_STYLE = files("console").joinpath("static/style.css").read_bytes()


@dataclass(frozen=True)
class Console:
    """What all pages need. `host`: the value of the header Host, with the port."""

    client: Client
    sign_ins: SignIns
    host: str
    system_namespace: str

    @property
    def cookie(self) -> str:
        """Browsers send a cookie to all ports of a host, so its name has the port."""
        return f"altershield-{self.host.rpartition(':')[2]}"


Page = Callable[[web.Request], Awaitable[web.Response]]


def application(console: Console) -> web.Application:
    pages = _Pages(console)
    app = web.Application(middlewares=[guard.guarded(console.host)], client_max_size=guard.MAX_BODY)
    app.add_routes(
        [
            web.get(SIGN_IN + "{secret}", pages.sign_in, allow_head=False),  # it would use the secret up
            web.get("/style.css", pages.style),
            web.get("/", pages.signed_in(pages.attention)),
            web.get("/ns/{namespace}", pages.signed_in(pages.attention)),
            web.get("/ns/{namespace}/{kind}/{name}", pages.signed_in(pages.workload)),
            web.get("/ns/{namespace}/{kind}/{name}/history", pages.signed_in(pages.history)),
            web.get("/gates/{namespace}", pages.signed_in(pages.gates)),
            web.get("/go", pages.signed_in(pages.go)),
            web.get("/me", pages.signed_in(pages.me)),
            web.post("/sign-out", pages.signed_in(pages.sign_out)),
            web.get("/{other:.*}", pages.signed_in(pages.unknown)),
        ]
    )
    return app


class _Pages:
    def __init__(self, console: Console) -> None:
        self._console = console
        loader = jinja2.PackageLoader("console")
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, finalize=_plain, trim_blocks=True
        )
        self._templates.filters["short_version"] = short_version

    def signed_in(self, page: Page) -> Page:
        """The page for those who have signed in. Errors become a page that says what happened."""

        async def answered(request: web.Request) -> web.Response:
            if not self._console.sign_ins.signed_in(request.cookies.get(self._console.cookie, "")):
                return self._signed_out()
            try:
                if "namespace" in request.match_info:
                    _demand_name(request.match_info["namespace"])
                return await page(request)
            except ReportedError as error:
                return self._failed(error)

        return answered

    async def sign_in(self, request: web.Request) -> web.Response:
        sign_ins = self._console.sign_ins
        cookie = sign_ins.sign_in(request.match_info["secret"])
        if cookie is None:
            # browsers load an address twice: first to guess what the reader opens, or again with their last tabs
            known = sign_ins.signed_in(request.cookies.get(self._console.cookie, ""))
            return self._page("signed_in.html") if known else self._signed_out()
        # a browser follows no redirect with the cookie if it came from a file, so the page leads on
        answer = self._page("signed_in.html")
        answer.set_cookie(self._console.cookie, cookie, httponly=True, samesite="Lax")
        return answer

    async def sign_out(self, request: web.Request) -> web.Response:
        self._console.sign_ins.sign_out(request.cookies.get(self._console.cookie, ""))
        answer = self._signed_out()
        answer.del_cookie(self._console.cookie)
        return answer

    async def style(self, _: web.Request) -> web.Response:
        return web.Response(body=_STYLE, content_type="text/css", charset="utf-8")

    async def attention(self, request: web.Request) -> web.Response:
        namespace = request.match_info.get("namespace", "")
        return self._page("attention.html", **await attention.page(self._console.client, namespace))

    async def workload(self, request: web.Request) -> web.Response:
        info, console = request.match_info, self._console
        found = await workload.page(
            console.client, info["namespace"], info["kind"], info["name"], console.system_namespace
        )
        return self._page("workload.html", **found)

    async def history(self, request: web.Request) -> web.Response:
        info = request.match_info
        found = await history.page(self._console.client, info["namespace"], info["kind"], info["name"])
        return self._page("history.html", **found)

    async def gates(self, request: web.Request) -> web.Response:
        console = self._console
        found = await gates.page(console.client, request.match_info["namespace"], console.system_namespace)
        return self._page("gates.html", **found)

    async def go(self, request: web.Request) -> web.Response:
        """To the page of the namespace that a form names."""
        namespace = request.query.get("namespace", "")
        _demand_name(namespace)
        raise web.HTTPSeeOther(f"/ns/{namespace}")

    async def me(self, _: web.Request) -> web.Response:
        info = await user_info(self._console.client)
        return self._page("me.html", name=info.get("username", ""), groups=info.get("groups") or ())

    async def unknown(self, _: web.Request) -> web.Response:
        return self._page("error.html", status=404, title="There is no such page", text="", advice="")

    def _signed_out(self) -> web.Response:
        return self._page("signed_out.html", status=401)

    def _failed(self, error: ReportedError) -> web.Response:
        """The page of an error. The API server's sentence names what the reader asked for."""
        match error if isinstance(error, KubernetesError) else error.__cause__:
            case UnauthorizedError():
                title, status = "The API server does not accept your credentials any more", 401
                advice = "Sign in with kubectl again, then start the console again."
            case UnreachableError():
                title, status = "The API server does not answer", 502
                advice = "Nothing was changed. Reload this page to try again."
            case ForbiddenError():
                title, status, advice = "You may not read this", 403, ""
            case KubernetesError() if isinstance(error, KubernetesError):
                title, status, advice = "The API server refuses the request", 502, ""
            case _:
                title, status, advice = "This cannot be shown", 404, ""
        return self._page("error.html", status=status, title=title, text=str(error), advice=advice)

    def _page(self, template: str, *, status: int = 200, **values: Any) -> web.Response:
        text = self._templates.get_template(template).render(server=self._console.client.server, **values)
        return web.Response(status=status, text=text, content_type="text/html")


def _demand_name(namespace: str) -> None:
    """UsageError: no namespace can have this name, so no request with it is sent."""
    if not is_name(namespace):
        raise UsageError(f'no namespace can have the name "{namespace}"')


def _plain(value: object) -> object:
    """What a template prints of a value. Markup that Jinja made stays; all else is text of somebody."""
    return value if hasattr(value, "__html__") else shown(value)
