"""TLS between memory buffers: ciphertext goes in, plaintext comes out, and the other way round. No I/O."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from typing import Final

__all__ = ["TlsLayers"]

_UNIT: Final = 64 * 1024
"""Bytes decrypted at once; a TLS record holds 16 KiB."""


class _Layer:
    __slots__ = ("incoming", "object", "outgoing")

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.object = context.wrap_bio(self.incoming, self.outgoing, server_hostname=server_name)


class TlsLayers:
    """The TLS of one connection: one layer to a server, or two behind an HTTPS proxy, one inside the other.

    :ivar ended: the other side said properly that nothing more comes.
    """

    def __init__(self) -> None:
        self._layers: list[_Layer] = []
        self.ended = False

    def __bool__(self) -> bool:
        return bool(self._layers)

    def add(self, context: ssl.SSLContext, server_name: str) -> None:
        """Encrypt what follows, inside the layers that there are."""
        self._layers.append(_Layer(context, server_name))

    def shake_hands(self) -> bool:
        """Go on with the handshake of the innermost layer, as far as its input allows; whether it is complete.

        :raises ssl.SSLError: the handshake failed.
        """
        top = len(self._layers) - 1
        try:
            self._move(top)
            self._layers[top].object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._encrypt_below(top)
        return True

    def receive(self, ciphertext: bytes | memoryview) -> None:
        """Take in what came over the connection; followed by :meth:`shake_hands` or :meth:`plaintext`."""
        self._layers[0].incoming.write(ciphertext)

    def receive_eof(self) -> None:
        """Take in that the connection has ended."""
        self._layers[0].incoming.write_eof()

    def plaintext(self) -> Iterator[bytes]:
        """Return the received data, decrypted.

        :raises ssl.SSLError: it cannot be, or the connection was cut (``SSLEOFError``).
        """
        top = len(self._layers) - 1
        self._move(top)
        read = self._layers[top].object.read
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            while data := read(_UNIT):
                yield data
            self.ended = True
        self._encrypt_below(top)

    def send(self, plaintext: bytes) -> None:
        """Encrypt; what is to be sent over the connection comes out of :meth:`ciphertext`."""
        top = len(self._layers) - 1
        self._layers[top].object.write(plaintext)
        self._encrypt_below(top)

    def close(self) -> None:
        """Say properly that nothing more comes, on every layer."""
        for level in range(len(self._layers) - 1, -1, -1):
            with contextlib.suppress(ssl.SSLError):
                self._layers[level].object.unwrap()
            self._encrypt_below(level)

    def ciphertext(self) -> bytes:
        """Return the data to be sent over the connection now."""
        outgoing = self._layers[0].outgoing
        return outgoing.read() if outgoing.pending else b""

    def _move(self, top: int) -> None:
        """Decrypt the layers below ``top`` into it."""
        for level in range(top):
            read = self._layers[level].object.read
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                while data := read(_UNIT):
                    self._layers[level + 1].incoming.write(data)
                self._layers[level + 1].incoming.write_eof()

    def _encrypt_below(self, top: int) -> None:
        for level in range(top, 0, -1):
            outgoing = self._layers[level].outgoing
            if outgoing.pending:
                self._layers[level - 1].object.write(outgoing.read())
