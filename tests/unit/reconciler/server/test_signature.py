"""The signature, with the test vectors of AlterShield's open API."""

import pytest

from reconciler.server.signature import body_content, query_content, sign, timestamp_of, verify

ORDER = b'{"bizExecOrderId":"prod/web/42","platform":"kubernetes"}'
LINES = '{\n  "changeTitle": "灰度发布 café"\n}\n'.encode()
TOKEN = "altershield-operator"

VECTORS = [
    pytest.param(1700000000000, body_content(ORDER), TOKEN, "SVYES81NYALHXBKCME3PTKG8JFFV5YTR6AWE11BN1SG=", id="V1"),
    pytest.param(
        1700000000,
        b'{"bizExecOrderId":"web--x--abc","changeSceneKey":"com.alipay.cafed.cloudrun.rollingupdate"}',
        "123",
        "5MSPB3QLMGZI7499T7RCGUBNUMYGZ59BNTMVCZWMQEE=",
        id="V2",
    ),
    pytest.param(
        1700000000000,
        query_content({"platform": "kubernetes"}),
        TOKEN,
        "M81XNLPHC4TQXWWLP31Z5HJB7PVKGAHNJHTDA4Y_0GY=",
        id="V3",
    ),
    pytest.param(1700000000001, body_content(LINES), TOKEN, "LSUUJS6G9CBASKEPUYE5E0HQEVZXNZULNUUDNQUY1YQ=", id="V4"),
    pytest.param(1700000000006, body_content(ORDER), TOKEN, "IW5EAHI-0G1S3MZMVTNQDB_LBRPT4VAHISAS2QALEZU=", id="V5"),
]


@pytest.mark.parametrize(("timestamp", "content", "token", "signature"), VECTORS)
def test_signature_equals_the_test_vector(timestamp: int, content: bytes, token: str, signature: str) -> None:
    assert sign(timestamp, content, token) == signature
    assert verify(signature, timestamp, content, token)


def test_signature_of_a_body_with_line_feeds_differs_from_the_vector() -> None:
    wrong = "MK9131KZX5NWLUGEGJ988ODH4WK_XH8ZLMFOUXLJ5FY="
    assert sign(1700000000001, LINES, TOKEN) == wrong
    assert not verify(wrong, 1700000000001, body_content(LINES), TOKEN)


def test_content_of_a_body_has_neither_cr_nor_lf_and_keeps_indentation() -> None:
    assert body_content(b'{\r\n  "a":\r1\n}\n') == b'{  "a":1}'


def test_content_of_a_query_is_compact_json_with_sorted_keys() -> None:
    assert query_content({}) == b"{}"
    assert query_content({"b": "2", "a": "ü"}) == '{"a":"ü","b":"2"}'.encode()


@pytest.mark.parametrize(
    ("signature", "timestamp", "content", "token"),
    [
        ("", 1700000000000, ORDER, TOKEN),
        ("ü€\ud800", 1700000000000, ORDER, TOKEN),
        ("svyes81nyalhxbkcme3ptkg8jffv5ytr6awe11bn1sg=", 1700000000000, ORDER, TOKEN),
        ("SVYES81NYALHXBKCME3PTKG8JFFV5YTR6AWE11BN1SG", 1700000000000, ORDER, TOKEN),
        ("SVYES81NYALHXBKCME3PTKG8JFFV5YTR6AWE11BN1SG=", 1700000000001, ORDER, TOKEN),
        ("SVYES81NYALHXBKCME3PTKG8JFFV5YTR6AWE11BN1SG=", 1700000000000, ORDER + b" ", TOKEN),
        ("SVYES81NYALHXBKCME3PTKG8JFFV5YTR6AWE11BN1SG=", 1700000000000, ORDER, TOKEN + "s"),
    ],
)
def test_other_signature_timestamp_content_or_token_is_refused(
    signature: str, timestamp: int, content: bytes, token: str
) -> None:
    assert not verify(signature, timestamp, content, token)


@pytest.mark.parametrize("token", ["", " ", "\n"])
def test_blank_token_verifies_nothing(token: str) -> None:
    assert not verify(sign(1, ORDER, token), 1, ORDER, token)


@pytest.mark.parametrize(
    ("header", "number"),
    [
        ("1700000000000", 1700000000000),
        ("007", 7),
        ("+5", 5),
        ("-5", -5),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        ("9" * 5000, None),
        ("", None),
        (" 5", None),
        ("5\n", None),
        ("1_000", None),
        ("٥", None),
        ("1e3", None),
    ],
)
def test_timestamp_of_accepts_decimal_numbers_of_64_bits(header: str, number: int | None) -> None:
    assert timestamp_of(header) == number
