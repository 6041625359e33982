"""Errors of requests to URLs that tenants write. No message contains a credential, or more of a URL than its host."""

from kube_base.errors import ReportedError


class OutboundError(ReportedError):
    """A request to a tenant's URL has no answer."""


class UrlNotAllowedError(OutboundError):
    """The URL, or an address of its host, is not allowed. Nothing was sent."""


class NotDeliveredError(OutboundError):
    """The request surely had no effect: no address, no connection, no TLS session, or no free slot in time."""


class NoAnswerError(OutboundError):
    """The request was sent, at least in part, and has no complete answer. It may have had an effect."""


class CredentialsError(OutboundError):
    """A Secret with credentials cannot be used. Nothing was sent."""


class SecretUnreadableError(OutboundError):
    """The API server did not return a Secret. It may do so later. Nothing was sent."""
