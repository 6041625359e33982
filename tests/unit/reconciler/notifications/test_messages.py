"""The requests for each type of receiver."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.receiver_messages import message
from reconciler.receivers.file import Receiver
from reconciler.receivers.vocabulary import Event, Type
from tests.unit.reconciler.notifications import schemas
from tests.unit.reconciler.notifications.receiving import NOW, happened, receiver


def body(own: Receiver, occurrence: Occurrence, cluster: str = "") -> Any:
    return json.loads(message(own, occurrence, cluster, NOW + 60).body)


def test_slack_gets_one_text() -> None:
    made = message(receiver(), happened(), "prod", NOW)
    assert made.url == "https://example.com/x"
    assert made.headers == {"Content-Type": "application/json"}
    assert json.loads(made.body) == {
        "text": "AlterShield of prod: the release of Deployment shop/web failed its verification: further releases are "
        "denied. failed: web-1 (errors: 0.2 is above max 0.05)\n"
        f"Version {'1' * 32}. What to do: altershield why deployment/web -n shop"
    }


def test_text_names_the_images_if_they_are_known() -> None:
    made = json.loads(message(receiver(), happened(images="web:2.3"), "prod", NOW).body)
    assert f"\nVersion {'1' * 32} (web:2.3). What to do:" in made["text"]
    own = message(receiver(template="{{workload}} {{images}}"), happened(images="<!here>"), "prod", NOW)
    assert "<!here>" not in json.loads(own.body)["text"]


@pytest.mark.parametrize("type_", Type)
@pytest.mark.parametrize("template", ["", "{{message}} {{reason}}", "{{summary}}"])
def test_text_of_a_pod_is_no_mention_and_no_link(type_: Type, template: str) -> None:
    for markup in (
        *("<!channel>", "<!here|here>", "<@U012AB3CD>", "<#C1>", "@channel", "(@all)", "@here", "@alice"),
        *("https://evil.example", "<https://evil.example|click>", "[click](//evil.example)", "![](http://x.example)"),
        *("HTTP://EVIL.example", "www.evil.example", "WWW.evil.example", "<a href=x>", "\u202etxt.exe"),
    ):
        occurrence = happened(message=f"last words: {markup} and {markup}", reason=markup)
        made = body(receiver(type_, template=template), occurrence)
        if type_ is Type.CLOUD_EVENTS:
            assert made["data"]["message"] == occurrence.message  # for programs
            made["data"] = {"text": made["data"]["text"]}
        shown = json.dumps(made, ensure_ascii=False)
        assert markup not in shown
        assert markup.replace("<", "&lt;").replace(">", "&gt;") not in shown


def test_escaped_text_looks_like_the_text() -> None:
    words = "failed: web@sha256:12ab is < 0.5 & > 0.1, key=[a] (b) a@b.example http: //"
    assert words in body(receiver("alertmanager"), happened(message=words))[0]["annotations"]["summary"]
    shown = body(receiver(), happened(message=f"see https://x {words}"))["text"]
    assert "see https:\u200b//x" in shown
    assert "web@sha256:12ab is &lt; 0.5 &amp; &gt; 0.1, key=[a] (b) a@b.example http: //" in shown


def test_text_of_a_pod_changes_nothing_else_in_the_json() -> None:
    text = '"}, {"labels": {"alertname": "Fake"}}], \\u0022 \x00\n{{cluster}}'
    (alert,) = body(receiver("alertmanager"), happened(message=text))
    assert alert["labels"]["alertname"] == "AlterShieldReleaseSuspendedNotification"
    assert alert["annotations"]["summary"].endswith("\\u0022  {{cluster}}")


def test_markup_of_the_template_stays() -> None:
    text = body(receiver(template="<!here> {{workload}}: <https://runbooks.example|what to do>"), happened())["text"]
    assert text == "<!here> web: <https://runbooks.example|what to do>"


def test_template_may_contain_the_default_summary_and_the_command() -> None:
    text = body(receiver(template="{{summary}} -> {{ command }}"), happened(message="a & b"), "prod")["text"]
    assert text == (
        "AlterShield of prod: the release of Deployment shop/web failed its verification: further releases are denied. "
        "a &amp; b -> altershield why deployment/web -n shop"
    )


def test_template_replaces_the_text() -> None:
    own = receiver(template="{{event}} {{namespace}}/{{ workload }} {{cluster}} {{time}}: {{reason}}")
    assert body(own, happened(), "prod")["text"] == "suspended shop/web prod 2023-11-14T22:13:20Z: FailedByCheck"


def test_value_is_not_read_as_a_template() -> None:
    assert body(receiver(template="{{message}}"), happened(message="{{cluster}}"))["text"] == "{{cluster}}"


def test_cloud_event_has_the_required_attributes_and_an_id_that_stays_the_same() -> None:
    own = receiver("cloudevents", token="t")
    made = message(own, happened(Event.ROLLED_BACK), "eu/1", NOW)
    assert made.headers == {
        "Content-Type": "application/cloudevents+json; charset=UTF-8",
        "Authorization": "Bearer t",
    }
    event = json.loads(made.body)
    text = event["data"].pop("text")
    assert "was rolled back" in text
    assert event == {
        "specversion": "1.0",
        "id": "u-1/rolled-back/1700000000",
        "source": "/altershield/eu%2F1",
        "type": "com.antgroup.defense.altershield.release.rolled-back",
        "subject": "shop/Deployment/web",
        "time": "2023-11-14T22:13:20Z",
        "datacontenttype": "application/json",
        "data": {
            "event": "rolled-back",
            "namespace": "shop",
            "kind": "Deployment",
            "workload": "web",
            "version": "1" * 32,
            "release": f"web--x--{'1' * 32}",
            "reason": "FailedByCheck",
            "message": "failed: web-1 (errors: 0.2 is above max 0.05)",
            "time": "2023-11-14T22:13:20Z",
            "cluster": "eu/1",
            "changeWorkload": {
                "apiVersion": "app.ops.cloud.alipay.com/v1alpha1",
                "kind": "ChangeWorkload",
                "name": f"web--x--{'1' * 32}",
                "uid": "u-1",
            },
        },
    }
    assert json.loads(message(own, happened(Event.ROLLED_BACK), "eu/1", NOW + 9).body)["id"] == event["id"]


def test_alert_begins_and_ends_with_the_same_labels() -> None:
    own = receiver("alertmanager", url="http://alertmanager.monitoring.svc:9093/")
    made = message(own, happened(), "", NOW + 60)
    assert made.url == "http://alertmanager.monitoring.svc:9093/api/v2/alerts"
    (begun,) = json.loads(made.body)
    (ended,) = body(own, happened(resolved=True, message="", reason=""))
    assert (
        begun["labels"]
        == ended["labels"]
        == {
            "alertname": "AlterShieldReleaseSuspendedNotification",
            "severity": "warning",
            "namespace": "shop",
            "kind": "Deployment",
            "workload": "web",
            "version": "1" * 32,
        }
    )
    assert (begun["startsAt"], begun["endsAt"]) == ("2023-11-14T22:13:20Z", "2023-11-15T22:14:20Z")
    assert (ended["startsAt"], ended["endsAt"]) == ("2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z")
    assert "\n" not in begun["annotations"]["summary"]


@pytest.mark.parametrize(
    ("event", "type_"), [(event, each) for event in Event for each in Type if event != "succeeded" or not each.ends]
)
def test_each_event_has_a_message_of_each_type(event: Event, type_: Type) -> None:
    made = body(receiver(type_), happened(event), "prod")
    assert made
    schemas.CHECKS.get(type_, bool)(made)


@given(
    st.sampled_from(Type),
    st.text(max_size=3000),
    st.sampled_from(["", "{{message}}", "a {{message}} {{message}} b"]),
)
def test_any_text_makes_a_message_of_bounded_length(type_: Type, text: str, template: str) -> None:
    made = message(receiver(type_, template=template), happened(message=text), "", NOW)
    assert len(made.body) < 32_768
    schemas.CHECKS.get(type_, bool)(json.loads(made.body))


def test_text_is_cut_at_2000_bytes() -> None:
    text = body(receiver(template="{{message}}" * 20), happened(message="e" * 1000))["text"]
    assert len(text) == 2000


def test_message_about_a_step_that_waits_names_the_command_that_promotes() -> None:
    text = body(receiver(), happened(Event.STEP_WAITING, message="step 2 of 4"))["text"]
    assert text.endswith("What to do: altershield promote deployment/web -n shop")
    assert "waits for your promotion. step 2 of 4" in text


def test_teams_gets_an_adaptive_card() -> None:
    made = message(receiver("teams", url="https://x.logic.azure.com/workflows/1?sig=s"), happened(), "prod", NOW)
    assert made.url == "https://x.logic.azure.com/workflows/1?sig=s"
    assert made.headers == {"Content-Type": "application/json"}
    (attachment,) = json.loads(made.body)["attachments"]
    assert attachment["content"]["body"] == [
        {
            "type": "TextBlock",
            "text": "AlterShield of prod: the release of Deployment shop/web failed its verification: further releases "
            "are denied",
            "wrap": True,
            "size": "medium",
            "weight": "bolder",
            "color": "attention",
        },
        {"type": "TextBlock", "text": "failed: web-1 (errors: 0.2 is above max 0.05)", "wrap": True},
        {
            "type": "FactSet",
            "facts": [
                {"title": "Cluster", "value": "prod"},
                {"title": "Version", "value": "1" * 32},
                {"title": "Reason", "value": "FailedByCheck"},
                {"title": "What to do", "value": "altershield why deployment/web -n shop"},
            ],
        },
    ]


def shown(own: Receiver, occurrence: Occurrence) -> list[str]:
    """The texts of a card."""
    made = body(own, occurrence)
    schemas.teams(made)
    return [each["text"] for each in made["attachments"][0]["content"]["body"]]


def test_card_has_the_own_title_and_each_line_of_the_own_text() -> None:
    own = receiver("teams", title="{{workload}}: {{event}}", template="{{message}}\n\n[book](https://x.example)\n")
    assert shown(own, happened(message="m")) == ["web: suspended", "m", "[book](https://x.example)"]


def test_card_of_a_text_that_is_empty_has_its_title() -> None:
    assert len(shown(receiver("teams", template="{{message}}"), happened(message=""))) == 1
    assert shown(receiver("teams", title="{{message}}", template="x"), happened(message="")) != ["", "x"]


@pytest.mark.parametrize("braces", ["{{", "{{{", "{{{{{"])
def test_text_of_a_pod_calls_no_function_of_a_card(braces: str) -> None:
    found = happened(message=f"{braces}DATE(2017-02-14T06:08:39Z)}}}}")
    text = "\u200b".join(braces)
    assert shown(receiver("teams", template="{{message}}"), found)[1] == f"{text}DATE(2017-02-14T06:08:39Z)}}}}"


ROUTING_KEY = "0123456789abcdefABCDEF0123456789"


def pager(**more: Any) -> Receiver:
    return receiver("pagerduty", url="https://events.pagerduty.com/", routing_key=ROUTING_KEY, **more)


def test_pagerduty_alert_begins_and_ends_with_the_same_key() -> None:
    made = message(pager(), happened(), "prod", NOW + 60)
    assert made.url == "https://events.pagerduty.com/v2/enqueue"
    assert made.headers == {"Content-Type": "application/json"}
    begun = json.loads(made.body)
    assert begun == {
        "routing_key": ROUTING_KEY,
        "event_action": "trigger",
        "dedup_key": "u-1/suspended/1700000000",
        "client": "AlterShield",
        "payload": {
            "summary": "AlterShield of prod: the release of Deployment shop/web failed its verification: further "
            "releases are denied. failed: web-1 (errors: 0.2 is above max 0.05)",
            "source": "prod/shop/deployment/web",
            "severity": "error",
            "timestamp": "2023-11-14T22:13:20Z",
            "component": "web",
            "group": "shop",
            "class": "suspended",
            "custom_details": {
                "version": "1" * 32,
                "release": f"web--x--{'1' * 32}",
                "reason": "FailedByCheck",
                "message": "failed: web-1 (errors: 0.2 is above max 0.05)",
                "command": "altershield why deployment/web -n shop",
                "text": "AlterShield of prod: the release of Deployment shop/web failed its verification: further "
                f"releases are denied. failed: web-1 (errors: 0.2 is above max 0.05)\nVersion {'1' * 32}. What to do: "
                "altershield why deployment/web -n shop",
            },
        },
    }
    assert body(pager(), happened(resolved=True, message="", reason="")) == {
        "routing_key": ROUTING_KEY,
        "event_action": "resolve",
        "dedup_key": begun["dedup_key"],
    }


def test_title_of_a_receiver_is_the_summary_of_its_alerts() -> None:
    own = {"title": "{{namespace}}/{{workload}}: {{reason}}"}
    assert body(pager(**own), happened())["payload"]["summary"] == "shop/web: FailedByCheck"
    (alert,) = body(receiver("alertmanager", **own), happened())
    assert alert["annotations"]["summary"] == "shop/web: FailedByCheck"
    assert alert["annotations"]["description"].startswith("AlterShield: the release")


def test_summary_of_pagerduty_has_at_most_1024_characters() -> None:
    made = body(pager(title="{{message}}{{message}}"), happened(message="e" * 2000))
    schemas.pagerduty(made)
    assert len(made["payload"]["summary"].encode()) <= 1024
