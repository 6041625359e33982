"""The error of certgen."""

from kube_base.errors import ReportedError


class CertificateError(ReportedError):
    """A certificate, a key or the Secret that holds them cannot be used. The message never contains key material."""

    exit_code = 3
