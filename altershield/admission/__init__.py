"""What API servers ask the gatekeeper about: the registry of admission handlers, and the webhooks that follow from it.

The chart, `altershield dev` and the gatekeeper read the registry here. The handlers themselves live in
`gatekeeper/handlers/`, which this package does not import: a registration names its handler.
"""
