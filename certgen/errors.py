"""What certgen raises on purpose."""

from altershield.errors import AlterShieldError


class CertificateError(AlterShieldError):
    """A certificate, a key or the Secret that holds them cannot be used. Never quotes key material."""

    exit_code = 3
