"""The policies that deny requests of users."""

from command.install.breaker_policies import breaker_policies
from command.install.duties_policies import duties_policies
from command.install.user_policies import user_policies


def test_every_denial_names_a_page() -> None:
    made = [*user_policies("reconciler"), *duties_policies("reconciler")]
    made += breaker_policies("gatekeeper", "reconciler")
    messages = [each["messageExpression"] for policy in made for each in policy["spec"].get("validations", ())]
    assert messages
    assert [each for each in messages if "see https://" not in each] == []
