"""TLS contexts for a client of an API server, and the expiry of certificates."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from fivespot.runtime.errors import ConfigError

__all__ = ["client_context", "not_after"]

_SEQUENCE = 0x30
_EXPLICIT_VERSION = 0xA0
_UTC_TIME = 0x17


def client_context(
    *, ca: Path | None, certificate: Path | None = None, key: Path | None = None, verify: bool = True
) -> ssl.SSLContext:
    """Create a context that trusts ``ca`` (None: the system's CAs) and presents a client certificate if given.

    Blocking: it reads files.

    :raises ConfigError: a file cannot be used; the message names it.
    """
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{ca}: no usable CA certificate: {_cause(error)}") from error
    # Python 3.13 requires X.509 extensions that the CAs of many clusters lack and kubectl does not check.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        try:
            # With a password given, OpenSSL does not prompt on the terminal for an encrypted key.
            context.load_cert_chain(certificate, key, password="")
        except (OSError, ValueError) as error:
            raise ConfigError(f"{certificate} with key {key}: no usable client certificate: {_cause(error)}") from error
    return context


def not_after(pem: bytes) -> datetime | None:
    """Read the expiry of the first certificate in a PEM file (RFC 5280, 4.1.2.5); None if it cannot be read."""
    try:
        text = pem.decode()
        start = text.index("-----BEGIN CERTIFICATE-----")
        end = text.index("-----END CERTIFICATE-----", start) + len("-----END CERTIFICATE-----")
        certificate = _Der(ssl.PEM_cert_to_DER_cert(text[start:end]))
        fields = certificate.enter().enter()
        if fields.tag() == _EXPLICIT_VERSION:
            fields.skip()
        for _ in ("serialNumber", "signature", "issuer"):
            fields.skip()
        validity = fields.enter()
        validity.skip()
        tag, value = validity.read()
        digits = value.decode("ascii")
        if tag == _UTC_TIME:
            # RFC 5280: two-digit years from 50 on are 19xx.
            digits = ("19" if digits >= "50" else "20") + digits
        return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except (ValueError, IndexError):
        return None


class _Der:
    """A reader of as much DER (X.690) as leads to a field of a certificate."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def tag(self) -> int:
        return self._data[self._at]

    def read(self) -> tuple[int, bytes]:
        tag, length, start = self._data[self._at], self._data[self._at + 1], self._at + 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(self._data[start : start + count], "big")
            start += count
        self._at = start + length
        if self._at > len(self._data):
            raise ValueError("cut short")
        return tag, self._data[start : self._at]

    def skip(self) -> None:
        self.read()

    def enter(self) -> _Der:
        tag, value = self.read()
        if tag != _SEQUENCE:
            raise ValueError("not a sequence")
        return _Der(value)


def _cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "unreadable PEM"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
