"""Placeholders in PromQL, and values that try to become syntax."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.change_workload import SourceRef
from reconciler.checks import promql
from reconciler.checks.placeholders import NAMES, escaped, unknown_placeholder, values_of
from tests.unit.altershield.releases import builders
from tests.unit.reconciler.checks.subjects import subject


def rendered(query: str, **fields: object) -> str:
    return promql.render(query, values_of(subject(**fields)))  # type: ignore[arg-type]


def test_each_placeholder_gets_the_value_of_the_batch() -> None:
    assert rendered('up{namespace="{{namespace}}", job="{{workload}}", kind="{{ kind }}"}') == (
        'up{namespace="default", job="sleep", kind="Deployment"}'
    )
    assert rendered('up{version="{{version}}"} / up{version="{{previousVersion}}"}') == (
        f'up{{version="{builders.V1}"}} / up{{version="{builders.V2}"}}'
    )
    assert rendered("up{pod=~'{{pods}}'}") == "up{pod=~'sleep-7d4b9-abcde|sleep-7d4b9-fghij'}"
    assert rendered("up{pod=~`{{previousPods}}`}") == "up{pod=~`sleep-5c6f8-[a-z0-9]{5}`}"
    assert rendered('sum(up{pod=~"{{pods}}"}) / {{podCount}}') == (
        'sum(up{pod=~"sleep-7d4b9-abcde|sleep-7d4b9-fghij"}) / 2'
    )


def test_each_variable_gets_the_value_of_the_batch() -> None:
    assert rendered('up{namespace="$namespace", job="$workload", step="$step"} * $step') == (
        'up{namespace="default", job="sleep", step="0"} * 0'
    )
    assert rendered('up{version="$version"} / up{version="$previous_version"}') == (
        f'up{{version="{builders.V1}"}} / up{{version="{builders.V2}"}}'
    )
    assert rendered('up{pod=~"$new_pods"}') == 'up{pod=~"sleep-7d4b9-abcde|sleep-7d4b9-fghij"}'
    assert rendered('up{pod=~"$old_pods"}') == 'up{pod=~"sleep-5c6f8-[a-z0-9]{5}"}'


def test_dollar_that_begins_no_name_stays() -> None:
    query = """label_replace(up{a=~"x$|y$"}, "b", "$1-${c}", "d", "(?P<c>.*)")  # $nothing"""
    assert rendered(query) == query


def test_name_with_dots_is_exact_in_a_regular_expression_and_unchanged_in_a_string() -> None:
    query = 'up{a="{{workload}}", b=~"{{workload}}-.*", c!~ \'{{workload}}\'}'
    assert rendered(query, name="my.app") == 'up{a="my.app", b=~"my[.]app-.*", c!~ \'my[.]app\'}'


def test_comment_between_operator_and_string_does_not_hide_the_operator() -> None:
    assert rendered('up{a=~ # "{{workload}}"\n "{{workload}}"}', name="my.app") == (
        'up{a=~ # "{{workload}}"\n "my[.]app"}'
    )


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ('up{a="{{nodes}}"}', "{{nodes}} is not a placeholder; there are: namespace, "),
        ('up{a="{{name space}}"}', "{{name space}} is not a placeholder"),
        ('up{a="{{namespace}"}', "{{namespace} is not a placeholder"),
        ('up{a="{{}}"}', "{{}} is not a placeholder"),
        ("{{namespace}}_up", "{{namespace}} has to be in quotes"),
        ('up{a="x"} {{pods}}', "{{pods}} has to be in quotes"),
        ('up{pod="{{pods}}"}', "{{pods}} is a regular expression: compare it with =~ or !~"),
        ('up{pod="a{{previousPods}}"}', "{{previousPods}} is a regular expression"),
        ('up{a="x}', 'a string that begins with " does not end'),
        ("up{a='x\ny'}", "a string that begins with ' does not end"),
        (r'up{a="\{{namespace}}"}', "a backslash before {{"),
        (r'up{a="\$namespace"}', "a backslash before {{ or $"),
        ('up{a="$nodes"}', "$nodes is not a placeholder; there are: $new_pods, "),
        ("rate(up[$__rate_interval])", "$__rate_interval is not a placeholder"),
        ('up{a="$pods"}', "$pods is not a placeholder"),
        ("$namespace", "$namespace has to be in quotes"),
        ('up{pod="$old_pods"}', "$old_pods is a regular expression: compare it with =~ or !~"),
    ],
)
def test_query_with_a_wrong_placeholder_is_refused_with_the_reason(query: str, text: str) -> None:
    assert text in promql.problem(query)
    with pytest.raises(ValueError, match=re.escape(text)):
        rendered(query)


@pytest.mark.parametrize("query", ["up", 'up{a="}}"}', "up{a=`\\d{2}`}", "up # it's", 'count({__name__=~"a.{2}"})'])
def test_query_without_placeholders_is_accepted_and_unchanged(query: str) -> None:
    assert promql.problem(query) == ""
    assert rendered(query) == query


def test_placeholder_without_a_value_is_an_error_because_an_empty_matcher_matches_other_series() -> None:
    with pytest.raises(ValueError, match=re.escape("{{previousVersion}} has no value for this release")):
        rendered('up{version="{{previousVersion}}"}', previous=SourceRef())
    with pytest.raises(ValueError, match="previousPods"):
        rendered('up{pod=~"{{previousPods}}"}', previous=SourceRef())
    with pytest.raises(ValueError, match="previousPods"):  # the pods of all versions have the same names
        rendered('up{pod=~"{{previousPods}}"}', kind="StatefulSet")
    with pytest.raises(ValueError, match="previousPods"):  # the names of its pods are cut
        rendered('up{pod=~"{{previousPods}}"}', previous=SourceRef("ReplicaSet", "x" * 60, "old", builders.V2))


def test_query_that_becomes_too_long_is_an_error() -> None:
    with pytest.raises(ValueError, match="longer than 65536"):
        rendered('up{pod=~"{{pods}}"}', pods=tuple(f"{'x' * 200}-{number}" for number in range(400)))


@pytest.mark.parametrize(
    "pod", ['a"} or up{pod=~"', "a'", "a`", "a\\", "a|b", "a\n", "a b", "", ".*", "a{", "é", "a#", "-", "a\0"]
)
def test_pod_name_that_kubernetes_does_not_accept_is_an_error(pod: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        values_of(subject(pods=(pod,)))


def test_previous_version_that_is_not_a_label_value_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not a name"):
        values_of(subject(previous=SourceRef("ReplicaSet", "web", "old", '"} or up{')))


@given(st.text())
def test_escaped_text_matches_itself_only_or_is_refused(text: str) -> None:
    try:
        pattern = escaped(text)
    except ValueError:
        return
    assert re.fullmatch(pattern, text)
    assert not re.fullmatch(pattern, text.replace(".", "x")) or "." not in text
    assert not set(pattern) & set("\"'`\\#\n{}|*+?()^$")


@given(st.sampled_from("\"'`"), st.text(), st.sampled_from(NAMES))
def test_value_never_adds_a_string_to_a_query(quote: str, pod: str, name: str) -> None:
    query = f"up{{a=~{quote}{{{{{name}}}}}{quote}}}"
    try:
        result = rendered(query, pods=(pod, f"{pod}2"), name="web")
    except ValueError:
        return
    assert result.startswith(f"up{{a=~{quote}")
    assert result.endswith(f"{quote}}}")
    assert result.count(quote) == 2
    assert "\\" not in result


@given(st.text())
def test_any_text_is_either_refused_with_a_sentence_or_rendered(query: str) -> None:
    if promql.problem(query):
        return
    assert unknown_placeholder(query) == ""
    rendered(query)


@given(st.text(alphabet="\"'`\\#{}= ~\nax"))
def test_any_quotes_are_read_to_their_end(query: str) -> None:
    assert "".join(token.text for token in promql._tokens(query)) == query
