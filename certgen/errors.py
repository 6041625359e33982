"""The error of certgen."""

from altershield.errors import AlterShieldError


class CertificateError(AlterShieldError):
    """A certificate, a key or the Secret that holds them cannot be used. The message never contains key material."""

    exit_code = 3
