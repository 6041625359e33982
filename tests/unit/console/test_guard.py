"""What the console answers to requests that none of its pages sends."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpClient

from console.guard import HEADERS, guarded
from console.local import serving
from console.sign_ins import SignIns
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration

PAGES = ["/", "/ns/shop", "/ns/shop/deployment/web", "/me", "/gates/shop", "/go?namespace=shop", "/nothing/here"]


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """The address that signs in. A request to the API server would fail: nothing listens there."""
    async with (
        Client(Configuration("http://127.0.0.1:1")) as client,
        serving(client, 0, "system") as new_address,
    ):
        yield new_address()


async def answer(address: str, request: str, *headers: str) -> tuple[int, str]:
    """The status and the whole answer to a request with these header lines; `HOST` in them is the console's."""
    host = address.split("/")[2]
    reader, writer = await asyncio.open_connection(*host.split(":"))
    head = "\r\n".join((request, *headers, "Connection: close", "", "")).replace("HOST", host)
    writer.write(head.encode())
    text = (await reader.read()).decode()
    writer.close()
    return int(text.split(" ")[1]), text


async def signed_in(address: str) -> str:
    """The header with the cookie of a new session."""
    _, text = await answer(address, f"GET /{address.split('/', 3)[3]} HTTP/1.1", "Host: HOST")
    found = re.search(r"Set-Cookie: ([^;]+); HttpOnly; Path=/; SameSite=Lax", text)
    assert found is not None, text
    return f"Cookie: {found[1]}"


@pytest.mark.parametrize("page", PAGES)
async def test_page_without_a_session_names_nothing(address: str, page: str) -> None:
    for headers in (["Host: HOST"], ["Host: HOST", "Cookie: altershield-80=x", "Authorization: Bearer x"]):
        status, text = await answer(address, f"GET {page} HTTP/1.1", *headers)
        assert status == 401
        assert "shop" not in text
        assert "127.0.0.1:1<" not in text


@pytest.mark.parametrize("name", ["X-Remote-User", "X_Remote_User", "X-Forwarded-User", "Impersonate-User"])
async def test_header_with_a_name_signs_nobody_in(address: str, name: str) -> None:
    status, _ = await answer(address, "GET /me HTTP/1.1", "Host: HOST", f"{name}: admin")
    assert status == 401


async def test_secret_signs_in_once(address: str) -> None:
    path = f"/{address.split('/', 3)[3]}"
    assert (await answer(address, f"GET {path} HTTP/1.1", "Host: HOST"))[0] == 200
    status, text = await answer(address, f"GET {path} HTTP/1.1", "Host: HOST")
    assert status == 401
    assert "Set-Cookie" not in text


async def test_head_uses_no_secret_up(address: str) -> None:
    path = f"/{address.split('/', 3)[3]}"
    status, text = await answer(address, f"HEAD {path} HTTP/1.1", "Host: HOST")
    assert status == 401
    assert "Set-Cookie" not in text
    assert (await answer(address, f"GET {path} HTTP/1.1", "Host: HOST"))[0] == 200


async def test_browser_that_has_signed_in_may_load_the_address_again(address: str) -> None:
    path, cookie = f"/{address.split('/', 3)[3]}", await signed_in(address)
    status, text = await answer(address, f"GET {path} HTTP/1.1", "Host: HOST", cookie)
    assert status == 200
    assert "Set-Cookie" not in text


async def test_every_answer_has_the_headers_that_confine_a_page(address: str) -> None:
    cookie = await signed_in(address)
    for request, *headers in (
        ("GET / HTTP/1.1", "Host: HOST"),
        ("GET /style.css HTTP/1.1", "Host: HOST"),
        ("GET /nothing HTTP/1.1", "Host: HOST", cookie),
        ("GET /go?namespace=shop HTTP/1.1", "Host: HOST", cookie),
        ("GET / HTTP/1.1", "Host: evil.example"),
        ("PUT / HTTP/1.1", "Host: HOST", "Content-Length: 0"),
    ):
        _, text = await answer(address, request, *headers)
        for name, value in HEADERS.items():
            assert f"{name}: {value}" in text, request
        assert "Access-Control-Allow" not in text


@pytest.mark.parametrize(
    ("request_line", "hosts"),
    [
        ("GET / HTTP/1.1", ["Host: evil.example"]),
        ("GET / HTTP/1.1", ["Host: localhost"]),
        ("GET / HTTP/1.1", ["Host: 127.0.0.1"]),
        ("GET / HTTP/1.1", ["Host: HOST", "Host: evil.example"]),
        ("GET / HTTP/1.1", []),
        ("GET / HTTP/1.0", []),
        ("GET http://evil.example/ HTTP/1.1", ["Host: HOST"]),
        ("GET http://evil.example/ HTTP/1.1", ["Host: evil.example"]),
    ],
)
async def test_other_name_of_the_host_is_refused(address: str, request_line: str, hosts: list[str]) -> None:
    cookie = await signed_in(address)
    status, text = await answer(address, request_line, *hosts, cookie)
    assert 400 <= status < 500
    assert status != 401
    assert "<html" not in text


_OWN = ["Host: HOST", "Origin: http://HOST", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 0"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([each for each in _OWN if "Origin" not in each], 403),
        (["Host: HOST", "Origin: http://evil.example", *_OWN[2:]], 403),
        (["Host: HOST", "Origin: null", *_OWN[2:]], 403),
        (["Host: HOST", "Origin: https://HOST", *_OWN[2:]], 403),
        (["Host: HOST", "Origin: http://console.HOST", *_OWN[2:]], 403),
        ([*_OWN, "Origin: http://evil.example"], 403),
        ([*_OWN, "Sec-Fetch-Site: cross-site"], 403),
        ([*_OWN, "Sec-Fetch-Site: same-site"], 403),
        ([*_OWN[:2], "Content-Type: application/json", "Content-Length: 0"], 415),
        ([*_OWN[:2], "Content-Type: text/plain", "Content-Length: 0"], 415),
        ([*_OWN[:2], "Content-Length: 0"], 415),
    ],
)
async def test_form_of_another_site_changes_nothing(address: str, headers: list[str], status: int) -> None:
    cookie = await signed_in(address)
    assert (await answer(address, "POST /sign-out HTTP/1.1", *headers, cookie))[0] == status
    assert (await answer(address, "GET /nothing HTTP/1.1", "Host: HOST", cookie))[0] == 404  # still signed in


async def test_form_of_the_console_signs_out(address: str) -> None:
    cookie = await signed_in(address)
    await answer(address, "POST /sign-out HTTP/1.1", *_OWN, "Sec-Fetch-Site: same-origin", cookie)
    assert (await answer(address, "GET /nothing HTTP/1.1", "Host: HOST", cookie))[0] == 401


@pytest.mark.parametrize("name", ["..%2f..%2f", "%2f%2fevil.example", "Shop", ""])
async def test_form_leads_to_own_pages_only(address: str, name: str) -> None:
    cookie = await signed_in(address)
    status, text = await answer(address, f"GET /go?namespace={name} HTTP/1.1", "Host: HOST", cookie)
    assert status == 404
    assert "Location" not in text


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "..%2f..%2fsecrets", "a%00b", "shop%3flimit=1", "%3Cb%3E", "%ff", "A"]
)
@pytest.mark.parametrize(
    "page", ["/ns/NAME", "/ns/NAME/deployment/web", "/ns/NAME/deployment/web/history", "/gates/NAME"]
)
async def test_name_that_no_namespace_can_have_is_not_sent(address: str, name: str, page: str) -> None:
    cookie = await signed_in(address)
    status, text = await answer(address, f"GET {page.replace('NAME', name)} HTTP/1.1", "Host: HOST", cookie)
    assert status == 404
    assert "no namespace can have the name" in text


@pytest.mark.parametrize(
    ("request_line", "header"),
    [
        ("GET / HTTP/1.1", "COOKIE; x=" + "x" * 9000),
        ("GET / HTTP/1.1", "COOKIE\x00"),
        ("GET PATH x HTTP/1.1", "X: x"),
        ("GET PATH HTTP/9.9x", "X: x"),
    ],
)
async def test_malformed_request_is_not_logged(
    address: str, request_line: str, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"/{address.split('/', 3)[3]}"
    header = header.replace("COOKIE", await signed_in(address))
    status, _ = await answer(address, request_line.replace("PATH", path), "Host: HOST", header)
    assert status == 400
    assert caplog.text == ""


async def test_api_server_that_does_not_answer_is_said(address: str) -> None:
    cookie = await signed_in(address)
    status, text = await answer(address, "GET /ns/shop HTTP/1.1", "Host: HOST", cookie)
    assert status == 502
    assert "The API server does not answer" in text


def test_secrets_and_sessions_end() -> None:
    now = 0.0
    sign_ins = SignIns(lambda: now)
    late, used = sign_ins.new_secret(), sign_ins.new_secret()
    cookie = sign_ins.sign_in(used)
    assert cookie is not None
    assert sign_ins.sign_in(used) is None
    now = 120.0
    assert sign_ins.sign_in(late) is None
    assert sign_ins.signed_in(cookie)
    now = 8 * 3600.0
    assert not sign_ins.signed_in(cookie)


def test_oldest_session_ends_when_there_are_too_many() -> None:
    sign_ins = SignIns(lambda: 0.0)
    cookies = [sign_ins.sign_in(sign_ins.new_secret()) or "" for _ in range(201)]
    assert [sign_ins.signed_in(each) for each in (cookies[0], cookies[1], cookies[-1])] == [False, True, True]
    assert not sign_ins.signed_in("")


async def test_page_that_fails_has_the_headers_and_says_nothing_of_the_failure(aiohttp_client: AiohttpClient) -> None:
    async def failing(_: web.Request) -> web.Response:
        raise KeyError("a secret")

    app = web.Application(middlewares=[guarded("127.0.0.1:80")])
    app.router.add_get("/", failing)
    client = await aiohttp_client(app)
    async with client.get("/", headers={"Host": "127.0.0.1:80"}) as found:
        assert found.status == 500
        assert "secret" not in await found.text()
        assert HEADERS.items() <= found.headers.items()
