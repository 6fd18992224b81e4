"""One HTTP/1.1 connection: TLS, framing (llhttp) and time limits, for one request at a time.

TLS runs over memory buffers instead of through asyncio's own TLS transport. That transport keeps 256 KiB for every
connection, and it holds encrypted requests back in buffers of its own, so that nobody can tell whether a request that
is cancelled has left the process. Here all connections of a loop share one receive buffer, and :meth:`abort` drops
whatever the kernel has not taken yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

import httptools

from fivespot.runtime.errors import BrokenStreamError, ConnectError, DeadlineError, TransportError

from .tls_layers import TlsLayers
from .transport import Limits

__all__ = ["Http1Connection", "ReceiveBuffer"]

HEAD_LIMIT: Final = 1024 * 1024
"""Bytes of a response before its body: each unknown field of an object may add a Warning."""
_RECEIVE_BYTES: Final = 256 * 1024
_PAUSE_BYTES: Final = 512 * 1024
"""Undelivered bytes of a streamed response at which the connection stops reading."""
_SHORT: Final = 64 * 1024
"""Bytes of a body that is joined to its head, so that both leave in one write."""


class ReceiveBuffer:
    """The buffer that all connections of an event loop receive into: each empties it before the next one reads."""

    __slots__ = ("view",)

    def __init__(self) -> None:
        self.view = memoryview(bytearray(_RECEIVE_BYTES))


class Http1Connection(asyncio.BufferedProtocol):
    """A connection to one server, or to the proxy in front of it.

    Not guaranteed: that a request which was cancelled or timed out has not reached the server. It has not if the
    kernel had taken none of it when the connection was aborted.

    :param server: the URL of the server, for errors.
    :ivar reusable: the response was read to its end, and both sides keep the connection open.
    :ivar answered: the head of a response has arrived, once at least.
    :ivar answered_after: seconds from the last request to the head of its response.
    """

    def __init__(
        self, server: str, buffer: ReceiveBuffer, on_lost: Callable[[Http1Connection], None], clock: Callable[[], float]
    ) -> None:
        self._server = server
        self._buffer = buffer.view
        self._on_lost = on_lost
        self._now = clock
        self._tls = TlsLayers()
        self._transport: asyncio.Transport | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._closed = False
        self._handshake: asyncio.Future[None] | None = None
        self._failure: TransportError | None = None
        self._end_of_input = False
        self.lost = False
        self.answered = False
        self.idle_since = 0.0
        self.answered_after = 0.0
        # The exchange under way.
        self._active = False
        self._bodiless = False
        self._whole = False
        self._head_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = self._sent = 0.0
        self._read_limit = 0.0
        self._size_limit = 0
        self._ends_at: float | None = None
        self._status = 0
        self._headers: dict[str, str] = {}
        self._head_done = False
        self._measured = False
        self._delimited = False
        self._kept_alive = False
        self._blocks: deque[bytes] = deque()
        self._buffered = 0
        self._done = False
        self._paused = False
        self._inflate: Any = None

    # The life of the connection ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = self._closed = True
        self._fail_exchange(_why(error))
        self._transport = self._parser = None
        self._on_lost(self)

    @property
    def reusable(self) -> bool:
        return not (self._closed or self._active or self._end_of_input) and self._transport is not None

    async def start_tls(self, context: ssl.SSLContext, server_name: str) -> None:
        """Encrypt what follows; a second call encrypts inside the first, as behind an HTTPS proxy.

        :raises ConnectError: the handshake failed; says why.
        """
        self._tls.add(context, server_name)
        self._handshake = asyncio.get_running_loop().create_future()
        try:
            self._shake_hands()
            await self._handshake
        finally:
            self._handshake = None

    async def tunnel(self, head: bytes, *, read: float) -> int:
        """Ask a proxy for a tunnel (CONNECT, RFC 9110 9.3.6); the status of its answer."""
        self.send(head, None, Limits(connect=read, read=read, total=None), head_only=True)
        status, _ = await self.opened()
        self._active = False
        # An answer to CONNECT has no body, which the parser cannot know.
        self._parser = httptools.HttpResponseParser(self)
        return status

    def abort(self) -> None:
        """Drop the connection at once, with all that the kernel has not taken yet; safe to call again."""
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    def farewell(self) -> None:
        """Close an idle connection: tell the other side, and wait for nothing."""
        if self._transport is None or self._closed:
            return
        self._closed = True
        if self._tls:
            self._tls.close()
            self._flush()
        if self._transport is not None:
            self._transport.close()

    # One exchange ------------------------------------------------------------------------------------------------

    def send(self, head: bytes, body: bytes | None, limits: Limits, *, head_only: bool) -> None:
        """Send a request. Followed by :meth:`whole`, or by :meth:`opened` and :meth:`read`.

        :param head_only: the response has no body (HEAD).
        """
        self._active, self._bodiless, self._whole = True, head_only, False
        self._head_bytes = self._status = self._buffered = 0
        self._head_done = self._done = self._measured = self._delimited = self._kept_alive = False
        self._headers = {}
        self._blocks.clear()
        self._failure = self._inflate = None
        self._heard = self._sent = self._now()
        self._read_limit, self._size_limit = limits.read, limits.size
        self._ends_at = None if limits.total is None else self._sent + limits.total
        self._arm()
        if self._closed or self._transport is None:
            self._fail_exchange("it was closed by the server")
            return
        self._write(head if not body else head + body if len(body) < _SHORT else head)
        if body and len(body) >= _SHORT:
            self._write(body)

    async def opened(self) -> tuple[int, dict[str, str]]:
        """Wait for the head of the response: its status and headers, whose names are in lower case."""
        while not self._head_done:
            await self._wait()
        return self._status, self._headers

    async def opened_within(self, seconds: float | None) -> bool:
        """Whether the head of the response arrives in time. The exchange goes on in any case."""
        if not self._head_done:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.opened()
        return self._head_done

    @property
    def has_head(self) -> bool:
        """Whether the head of the response has arrived."""
        return self._head_done

    @property
    def silent_for(self) -> float:
        """Seconds since the request was sent or something of its response arrived."""
        return self._now() - self._heard

    @property
    def measured(self) -> bool:
        """Whether the response announced its length."""
        return self._measured

    async def whole(self) -> tuple[int, dict[str, str], bytes]:
        """Wait for the whole response."""
        self._whole = True
        while not self._done:
            await self._wait()
        self._raise_failure()
        body = self._blocks[0] if len(self._blocks) == 1 else b"".join(self._blocks)
        self._blocks.clear()
        self._finish()
        return self._status, self._headers, body

    async def read(self) -> bytes:
        """The next bytes of the body as they came; b"" at its end."""
        while not self._blocks:
            if self._done:
                self._finish()
                return b""
            await self._wait()
        data = self._blocks.popleft() if len(self._blocks) == 1 else b"".join(self._blocks)
        self._blocks.clear()
        self._buffered = 0
        if self._paused and self._transport is not None:
            self._paused = False
            # What was not read in the meantime does not count as silence.
            self._heard = self._now()
            self._transport.resume_reading()
        return data

    async def _wait(self) -> None:
        self._raise_failure()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if not self._blocks:
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _finish(self) -> None:
        if not self._active:
            return
        self._active = False
        self._disarm()
        if not self._kept_alive:
            self.farewell()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: TransportError) -> None:
        """End the exchange, and the connection with it."""
        if self._handshake is not None and not self._handshake.done():
            self._handshake.set_exception(error)
        if self._active and not self._done and self._failure is None:
            self._failure = error
            self._wake()
        self.abort()
        self._disarm()

    def _fail_exchange(self, reason: str) -> None:
        if self._handshake is not None and not self._handshake.done():
            self._handshake.set_exception(ConnectError(f"cannot reach {self._server}: {reason}"))
        if self._active and not self._done and self._failure is None:
            if self._head_done:
                text = f"{self._server}: the connection ended in the middle of the answer: {reason}"
                self._failure = BrokenStreamError(text)
            else:
                self._failure = TransportError(f"{self._server}: the connection ended before the answer: {reason}")
            self._wake()
        self._disarm()

    # Limits ------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        due = self._heard + self._read_limit
        if self._ends_at is not None and self._ends_at < due:
            due = self._ends_at
        self._timer = asyncio.get_running_loop().call_at(due, self._on_timer)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if not self._active or self._done:
            return
        now = self._now()
        if self._ends_at is not None and now >= self._ends_at:
            self._expire()
        elif self._paused:
            # The reader is slow, not the server.
            self._heard = now
            self._arm()
        elif now >= self._heard + self._read_limit:
            self._expire()
        else:
            self._arm()

    def _expire(self) -> None:
        what = "the answer came too slowly" if self._head_done else "no answer within the limit"
        self._fail(DeadlineError(f"{self._server}: {what}"))

    # Sending -----------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        if self._tls:
            self._tls.send(data)
            self._flush()
        elif self._transport is not None:
            self._transport.write(data)

    def _flush(self) -> None:
        """Hand to the kernel what TLS has encrypted."""
        data = self._tls.ciphertext()
        if data and self._transport is not None:
            self._transport.write(data)

    # Receiving ---------------------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._heard = self._now()
        data = self._buffer[:nbytes]
        if not self._tls:
            self._feed(data)
            return
        self._tls.receive(data)
        handshake = self._handshake
        if handshake is not None and not handshake.done():
            self._shake_hands()
            if not handshake.done():
                return
        self._decrypt()

    def eof_received(self) -> bool:
        self._end_of_input = True
        if self._tls and self._handshake is None:
            # A TLS stream that just stops may have been cut by somebody else.
            self._tls.receive_eof()
            self._decrypt()
        elif self._active and self._delimited and not self._done:
            self._complete()
        return False

    def _shake_hands(self) -> None:
        handshake = self._handshake
        assert handshake is not None
        try:
            complete = self._tls.shake_hands()
        except (ssl.SSLError, ValueError) as error:
            self._flush()
            failure = ConnectError(f"cannot reach {self._server}: {error}")
            failure.__cause__ = error
            self._fail(failure)
            return
        self._flush()
        if complete:
            handshake.set_result(None)

    def _decrypt(self) -> None:
        try:
            for data in self._tls.plaintext():
                if self._parser is None or self._closed:
                    return
                self._feed(data)
        except ssl.SSLError as error:
            cut = isinstance(error, ssl.SSLEOFError)
            self._fail_exchange("the server closed the connection" if cut else error.reason or str(error))
            self.abort()
            return
        self._flush()
        if self._tls.ended:
            self._end_of_input = True
            if self._active and self._delimited and not self._done:
                self._complete()
            elif self._transport is not None:
                self._transport.close()

    def _feed(self, data: bytes | memoryview) -> None:
        if not self._active:
            # Nobody asked. A server that ends an idle connection may say why (408), which is no answer to anything.
            self.abort()
            return
        if not self._head_done:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(self._malformed("the server switches protocols"))
        except httptools.HttpParserError as error:
            self._fail(self._malformed(str(error)))
        else:
            if not self._head_done and self._head_bytes > HEAD_LIMIT:
                self._fail(self._malformed(f"the head of the answer is longer than {HEAD_LIMIT} bytes"))

    def _malformed(self, reason: str) -> TransportError:
        if self._head_done:
            return BrokenStreamError(f"{self._server}: the connection ended in the middle of the answer: {reason}")
        return TransportError(f"{self._server}: the connection ended before the answer: {reason}")

    # llhttp ------------------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")
        known = self._headers.get(key)
        self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        if self._parser is None:
            return
        status = self._parser.get_status_code()
        if status < 200:
            return
        headers = self._headers
        self._status = status
        self._measured = "content-length" in headers
        chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        empty = status in {204, 304} or self._bodiless
        self._delimited = not (self._measured or chunked or empty)
        if headers.get("content-encoding", "").lower() in {"gzip", "x-gzip"} and not empty:
            self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._head_done = self.answered = True
        self.answered_after = self._now() - self._sent
        if self._bodiless:
            self._complete()
        elif not self._whole:
            self._wake()

    def on_body(self, data: bytes) -> None:
        if self._inflate is not None:
            try:
                data = self._inflate.decompress(data, self._size_limit)
            except zlib.error as error:
                self._fail(self._malformed(f"the answer cannot be decompressed: {error}"))
                return
            if self._inflate.unconsumed_tail:
                self._fail(self._malformed(f"the answer is longer than {self._size_limit} bytes"))
                return
            if not data:
                return
        self._blocks.append(data)
        self._buffered += len(data)
        if self._whole:
            if self._buffered > self._size_limit:
                self._fail(self._malformed(f"the answer is longer than {self._size_limit} bytes"))
            return
        if self._buffered > _PAUSE_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        if self._head_done:
            # llhttp knows this only now, between two messages no more.
            self._kept_alive = self._parser is not None and self._parser.should_keep_alive()
            self._complete()
        else:
            # 1xx: the answer proper follows.
            self._headers = {}

    def _complete(self) -> None:
        if self._inflate is not None and not self._inflate.eof:
            self._fail(self._malformed("the compressed answer was cut"))
        elif not self._done:
            self._done = True
            self._disarm()
            self._wake()


def _why(error: Exception | None) -> str:
    if error is None:
        return "the server closed the connection"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
