"""The registry of admission handlers, and the webhooks that follow from it.

The chart, `altershield dev` and the gatekeeper read the registry here. A registration names its handler in
`gatekeeper/handlers/`. This package does not import the handlers.
"""
