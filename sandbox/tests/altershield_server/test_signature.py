"""Signatures: the vectors of the protocol, and which requests are refused."""

import json

import aiohttp
import pytest

from kube_sandbox.altershield_server import signature
from kube_sandbox.altershield_server.errors import BadRequestError
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.vocabulary import PLATFORM, Call
from support.altershield import BODIES, NOW, TOKEN, Caller

ORDER = '{"bizExecOrderId":"prod/web/42","platform":"kubernetes"}'
HEADERS = signature.headers(PLATFORM, TOKEN, ORDER, NOW)


@pytest.mark.parametrize(
    ("timestamp", "content", "token", "expected"),
    [
        (1700000000000, ORDER, TOKEN, "SVYES81NYALHXBKCME3PTKG8JFFV5YTR6AWE11BN1SG="),
        (
            1700000000,
            '{"bizExecOrderId":"web--x--abc","changeSceneKey":"com.alipay.cafed.cloudrun.rollingupdate"}',
            "123",
            "5MSPB3QLMGZI7499T7RCGUBNUMYGZ59BNTMVCZWMQEE=",
        ),
        (1700000000000, '{"platform":"kubernetes"}', TOKEN, "M81XNLPHC4TQXWWLP31Z5HJB7PVKGAHNJHTDA4Y_0GY="),
        (1700000000006, ORDER, TOKEN, "IW5EAHI-0G1S3MZMVTNQDB_LBRPT4VAHISAS2QALEZU="),
    ],
)
def test_signature_equals_the_vector_of_the_protocol(timestamp: int, content: str, token: str, expected: str) -> None:
    assert signature.sign(timestamp, content, token) == expected


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_post_is_signed_without_line_breaks(line_break: str) -> None:
    body = f'{{{line_break}  "changeTitle": "灰度发布 café"{line_break}}}{line_break}'.encode()
    content = signature.post_content(body)
    assert content == '{  "changeTitle": "灰度发布 café"}'
    assert signature.sign(1700000000001, content, TOKEN) == "LSUUJS6G9CBASKEPUYE5E0HQEVZXNZULNUUDNQUY1YQ="


def test_body_that_is_not_utf_8_is_a_bad_request() -> None:
    with pytest.raises(BadRequestError, match="UTF-8"):
        signature.post_content(b"\xff")


def test_get_is_signed_with_its_query_as_sorted_json() -> None:
    assert signature.get_content({}) == "{}"
    assert signature.get_content({"b": "2", "a": "1"}) == '{"a":"1","b":"2"}'


@pytest.mark.parametrize(
    "changed",
    [
        {signature.PLATFORM_HEADER: ""},
        {signature.TIMESTAMP_HEADER: " "},
        {signature.SIGN_HEADER: ""},
        {signature.TIMESTAMP_HEADER: "now"},
        {signature.TIMESTAMP_HEADER: str(2**63)},
        {signature.SIGN_HEADER: HEADERS[signature.SIGN_HEADER].lower()},
        {signature.SIGN_HEADER: "ü"},
        {signature.PLATFORM_HEADER: "other"},
        {signature.TIMESTAMP_HEADER: str(NOW + 1)},
    ],
)
async def test_wrong_header_is_refused_with_102(caller: Caller, changed: dict[str, str]) -> None:
    await caller.create_order()
    caller.headers = {**HEADERS, **changed}
    code, message = await caller.code(Call.START_BATCH)
    assert code == "102"
    assert TOKEN not in message
    assert caller.server.nodes == {}


async def test_wrong_token_is_refused_with_102(caller: Caller) -> None:
    caller.token = "another"
    assert (await caller.code(Call.CREATE_ORDER))[0] == "102"
    assert (await caller.heartbeat({}))["resultCode"] == "102"


async def test_headers_of_the_go_operator_are_refused_with_102(caller: Caller) -> None:
    caller.headers = {name.replace("AlterShield", "OpsCloud"): value for name, value in HEADERS.items()}
    assert (await caller.code(Call.CREATE_ORDER))[0] == "102"


async def test_invalid_body_is_refused_with_101_before_the_signature_is_checked(caller: Caller) -> None:
    caller.token = "another"
    assert (await caller.code(Call.CREATE_ORDER, tenantCode=None)) == ("101", "tenantCode must not be blank")


async def test_server_without_token_accepts_any_signature_but_needs_the_headers() -> None:
    async with AlterShieldServer() as server, aiohttp.ClientSession() as session:
        caller = Caller(server, session, token="anything")
        await caller.create_order()
        caller.headers = {"X-Other": "1"}
        assert (await caller.code(Call.CREATE_ORDER))[0] == "102"


async def test_body_with_line_breaks_is_accepted(caller: Caller) -> None:
    status, answer = await caller.raw(Call.CREATE_ORDER, json.dumps(BODIES[Call.CREATE_ORDER], indent=2).encode())
    assert (status, json.loads(answer)["success"]) == (200, True)


async def test_old_and_repeated_timestamps_are_accepted(caller: Caller) -> None:
    await caller.create_order()
    assert await caller.start_batch() != await caller.start_batch()  # the same bytes twice, years old
