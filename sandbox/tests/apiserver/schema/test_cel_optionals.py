"""The rewriting of optional fields in CEL expressions."""

import cel
import pytest

from kube_sandbox.apiserver.schema.cel_optionals import rewritten

OBJECT = {"metadata": {"labels": {"a/b": "1"}, "name": "x"}, "list": ["one"], "null": None}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("object.?metadata.?labels.orValue({}) == {'a/b': '1'}", True),
        ("object.?metadata.?annotations.orValue({}) == {}", True),
        ("object.?nope.deep.deeper.orValue('d')", "d"),
        ("object.metadata.?labels[?'a/b'].orValue('') == '1'", True),
        ("object.metadata.?labels[?'c'].orValue(') (') + '!'", ") (!"),
        ("object.?list[?0].orValue('') + object.?list[?1].orValue('-')", "one-"),
        ("object.?metadata.name.hasValue()", True),
        ("!object.?spec.hasValue() && object.metadata.name == 'x'", True),
        ("object.?a.orValue(object.?b.orValue('c'))", "c"),
        ("object.metadata.name.startsWith('x')", True),
        ("'a.?b.orValue(1)' == object.metadata.name ? 1 : 2", 2),
    ],
)
def test_optional_field_gives_its_value_or_the_default(expression: str, value: object) -> None:
    assert cel.evaluate(rewritten(expression), {"object": OBJECT}) == value


@pytest.mark.parametrize("expression", ["object.a == 1", "a ? b : c", "x.orValue(", "m[?k].orValue(1)", ""])
def test_expression_without_supported_optionals_is_not_rewritten(expression: str) -> None:
    assert rewritten(expression) == expression
