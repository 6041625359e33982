"""The sentence about a request without a complete answer. Pure functions."""

import os
import re
import ssl

import aiohttp

from kube_base.access.configuration import Configuration
from kube_base.access.errors import UnreachableError

_ERRNO = re.compile(r"\[Errno (\d+)\]")


def unreachable(error: Exception, configuration: Configuration, method: str, path: str) -> UnreachableError:
    """The error for a request that failed with an error of aiohttp or of the operating system."""
    server = configuration.host
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.ClientHttpProxyError):
        hint = f"; check the kubeconfig's context {configuration.context}" if configuration.context else ""
        return UnreachableError(f"cannot reach the API server at {server}: {_not_connected(error)}{hint}")
    return UnreachableError(f"no response from the API server at {server} to {method} {path}: {_not_answered(error)}")


def _not_connected(error: Exception) -> str:
    """Why there is no connection."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _described(error.certificate_error)
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answers {error.status}"
        case aiohttp.ClientProxyConnectionError():
            return f"no connection to the proxy {error.host}: {_described(error.os_error)}"
        case aiohttp.ClientConnectorDNSError():
            return f"name {error.host} not found"
        case aiohttp.ClientConnectorError():
            return _described(error.os_error)
        case _:
            return _described(error)


def _not_answered(error: Exception) -> str:
    """Why there is no complete answer although there is a connection."""
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return "the connection was closed"
    return _described(error)


def _described(error: Exception) -> str:
    """The error without the words of Python and of its libraries."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"certificate not accepted: {error.verify_message.rstrip('.')}"
        case ssl.SSLError():
            return f"TLS failed: {(error.reason or str(error)).replace('_', ' ').lower()}"
        case TimeoutError():
            return "timeout"
        case OSError():
            # the text names several errors if the server has several addresses
            numbers = [error.errno] if error.errno else [int(number) for number in _ERRNO.findall(str(error))]
            texts = dict.fromkeys(os.strerror(number).lower() for number in numbers if number > 0)
            return " or ".join(texts) or str(error) or type(error).__name__
        case _:
            return str(error) or type(error).__name__
