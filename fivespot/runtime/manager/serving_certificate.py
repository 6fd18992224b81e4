"""The certificate that metrics are served with: from files, read again when they change, or self-signed."""

from __future__ import annotations

import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import structlog

from fivespot.runtime.errors import ConfigError

__all__ = ["ServingCertificate"]

_CERTIFICATE, _KEY = "tls.crt", "tls.key"
_SECONDS: Final = 60.0
"""For the making of a certificate, in a process of its own."""

_SELF_SIGNED: Final = """
import datetime, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, sys.argv[1])])
now = datetime.datetime.now(datetime.UTC)
certificate = (
    x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    .serial_number(x509.random_serial_number())
    .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=3650))
    .add_extension(x509.SubjectAlternativeName([x509.DNSName(sys.argv[1])]), critical=False)
    .sign(key, hashes.SHA256())
)
private = key.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
sys.stdout.buffer.write(certificate.public_bytes(serialization.Encoding.PEM) + private)
"""
"""Run in a child, so that the library takes no memory of the manager's."""

_log = structlog.get_logger(__name__)


class ServingCertificate:
    """A TLS context for a server, TLS 1.2 or newer.

    :param directory: with ``tls.crt`` and ``tls.key``, as a Secret of type kubernetes.io/tls is mounted; "" has a
        self-signed certificate made, whose key never leaves the process's memory for longer than it takes to load it.
    :ivar context: for new connections; follows the files.
    """

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory) if directory else None
        self.context = _context()
        self._loaded: tuple[int, int] | None = None

    def load(self) -> None:
        """Load the certificate. Blocking.

        :raises ConfigError: a file cannot be used, or no certificate can be made; the message says what to do.
        """
        if self._directory is None:
            self._load_self_signed()
            return
        certificate, key = self._directory / _CERTIFICATE, self._directory / _KEY
        # Of a pair that does not fit together OpenSSL takes the first half: the context in use must not see it.
        context = _context()
        try:
            state = self._state(self._directory)
            # With a password given, OpenSSL does not prompt on the terminal for an encrypted key.
            context.load_cert_chain(certificate, key, password="")
        except (OSError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ConfigError(f"--metrics-cert-dir: {certificate} and {_KEY} cannot be used: {cause}") from error
        self.context, self._loaded = context, state

    def refresh(self) -> None:
        """Load the files again if they have changed. Blocking. What cannot be used is logged, and the old one kept."""
        if self._directory is None:
            return
        try:
            changed = self._state(self._directory) != self._loaded
            if changed:
                self.load()
                _log.info("loaded a new serving certificate", directory=str(self._directory))
        except (OSError, ConfigError) as error:
            _log.warning("the serving certificate cannot be loaded again", error=str(error))

    @staticmethod
    def _state(directory: Path) -> tuple[int, int]:
        # A mounted Secret is replaced through a symbolic link, which stat follows.
        return ((directory / _CERTIFICATE).stat().st_mtime_ns, (directory / _KEY).stat().st_mtime_ns)

    def _load_self_signed(self) -> None:
        command = [sys.executable, "-c", _SELF_SIGNED, "fivespot-metrics"]
        try:
            made = subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise ConfigError(
                "--metrics-secure: no certificate could be made; install 'fivespot[tls]', or name a directory with "
                f"{_CERTIFICATE} and {_KEY} (--metrics-cert-dir)"
            ) from error
        # OpenSSL reads certificates from files only; this one is readable to nobody else.
        with tempfile.NamedTemporaryFile(prefix="fivespot-") as file:
            file.write(made)
            file.flush()
            self.context.load_cert_chain(file.name)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
