"""DefensePolicies: whether a policy is accepted, and which one applies to a release."""
