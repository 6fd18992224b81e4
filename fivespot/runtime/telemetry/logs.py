"""Structured logs: one line a record, as JSON or as text, with credentials redacted."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, MutableMapping
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO, Literal

import msgspec
import structlog

from fivespot.runtime.clock import SystemClock
from fivespot.runtime.objects import rfc3339_micro

__all__ = [
    "LogFormat",
    "LogLimiter",
    "configure_logging",
]

LogFormat = Literal["json", "text"]

_SECRET_KEY = re.compile(r"token|passw|secret|authorization|credential|private_?key|client_?key|cookie", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}")
_OBJECT_BODY = frozenset(
    {"spec", "bootstrapSpec", "infrastructureSpec", "bootstrap_spec", "infrastructure_spec", "body"}
)
_HIDDEN = "(hidden)"
_DEPTH = 4
"""Depth to which nested values are searched for credentials."""

_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO)
_PLAIN = re.compile(r"[^\s\"=\x00-\x1f\x7f]+")
_encoder = msgspec.json.Encoder(enc_hook=str)


def configure_logging(
    format: LogFormat = "json",
    verbosity: int = 0,
    *,
    stream: BinaryIO | None = None,
    now: Callable[[], datetime] | None = None,
) -> None:
    """Configure structlog for the process, and route the standard library's log records to it.

    Fields of every line: ``time`` (RFC 3339, UTC, microseconds), ``level``, ``logger``, ``msg``; then the fields of
    the record. Exceptions become one ``exception`` field.

    :param verbosity: 0 logs info and above, 1 and more debug as well.
    :param stream: binary stream to write to; standard error when None.
    :param now: the wall clock.
    """
    level = logging.DEBUG if verbosity > 0 else logging.INFO
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _Stamp(now or SystemClock().now),
            _exception_text,
            hide_credentials,
            render_json if format == "json" else render_text,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_Factory(stream or sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Bridge)]:
        root.removeHandler(handler)
    root.addHandler(_Bridge())
    # Libraries log request bodies and headers below warning.
    root.setLevel(logging.WARNING)
    if not sys.warnoptions:
        warnings.simplefilter("default")
    logging.captureWarnings(True)


def traceback_text(error: BaseException) -> str:
    """The traceback as text, for the ``exception`` field of a record.

    Records of the runtime carry this instead of ``exc_info``: structlog's default renderer prints local variables where
    ``rich`` is installed, and credentials are among them.
    """
    return "".join(traceback.format_exception(error)).rstrip()


class LogLimiter:
    """Allows one record per key and ``interval``, and counts the suppressed ones.

    :param interval: seconds between two records of one key.
    :param size: keys remembered; the least recently seen are dropped first.
    """

    def __init__(self, interval: float, *, size: int = 1024) -> None:
        self._interval = interval
        self._size = size
        self._keys: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def allow(self, key: Hashable, at: float) -> int | None:
        """Number of records of the key suppressed since the last one, or None when this one has to be suppressed.

        :param at: now, in seconds of a monotonic clock.
        """
        last = self._keys.pop(key, None)
        if last is not None and at - last[0] < self._interval:
            self._keys[key] = (last[0], last[1] + 1)
            return None
        self._keys[key] = (at, 0)
        while len(self._keys) > self._size:
            self._keys.popitem(last=False)
        return last[1] if last is not None else 0


def hide_credentials(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Redact values whose name or form suggests a credential, and bodies of objects (a structlog processor)."""
    for name, value in event.items():
        event[name] = _HIDDEN if _hides(name) else _without_credentials(value, _DEPTH)
    return event


def render_json(logger: object, method: str, event: MutableMapping[str, Any]) -> bytes:
    """Render one JSON object. Never raises: values that JSON cannot hold are rendered as text."""
    ordered = _ordered(event)
    try:
        return _encoder.encode(ordered)
    except (TypeError, ValueError, RecursionError):
        safe = {str(name): _text_of(value) for name, value in ordered.items()}
        return json.dumps(safe, ensure_ascii=True).encode()


def render_text(logger: object, method: str, event: MutableMapping[str, Any]) -> bytes:
    """Render ``time level msg name=value ...``; values with spaces or control characters are quoted as JSON."""
    ordered = _ordered(event)
    stamp, level, name, message = (str(ordered.pop(field, "")) for field in ("time", "level", "logger", "msg"))
    if not message.isprintable():
        message = json.dumps(message)
    words = [stamp, f"{level.upper():<7}", message]
    if name:
        ordered = {"logger": name, **ordered}
    for field, value in ordered.items():
        words.append(f"{_word(field)}={_word(value if isinstance(value, str) else _text_of(value))}")
    return " ".join(words).encode("utf-8", "backslashreplace")


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.isprintable() else json.dumps(text)


def _ordered(event: MutableMapping[str, Any]) -> dict[str, Any]:
    first = {
        "time": event.pop("time", ""),
        "level": event.pop("level", ""),
        "logger": event.pop("logger", ""),
        "msg": event.pop("event", ""),
    }
    if not first["logger"]:
        del first["logger"]
    return first | dict(event)


def _text_of(value: object) -> str:
    try:
        return _encoder.encode(value).decode() if isinstance(value, (Mapping, list, tuple)) else str(value)
    except (TypeError, ValueError, RecursionError):
        return ascii(value)


def _hides(name: object) -> bool:
    return isinstance(name, str) and _names_a_secret(name)


@lru_cache(maxsize=1024)
def _names_a_secret(name: str) -> bool:
    return name in _OBJECT_BODY or _SECRET_KEY.search(name) is not None


def _without_credentials(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _SECRET_VALUE.sub(rf"\1 {_HIDDEN}", value)
    if depth and isinstance(value, Mapping):
        return {k: _HIDDEN if _hides(k) else _without_credentials(v, depth - 1) for k, v in value.items()}
    if depth and isinstance(value, (list, tuple)):
        return [_without_credentials(item, depth - 1) for item in value]
    return value


class _Stamp:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def __call__(self, logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["time"] = rfc3339_micro(self._now())
        name = getattr(logger, "name", "")
        if name:
            event.setdefault("logger", name)
        return event


def _exception_text(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()[1]
    elif isinstance(info, tuple):
        info = info[1]
    if isinstance(info, BaseException):
        event["exception"] = traceback_text(info)
    return event


class _Lines:
    """A named logger that writes rendered lines to the stream."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        self._stream = stream

    def msg(self, line: bytes) -> None:
        # Nobody reads standard error any more, or its disk is full: no reason to stop working.
        with contextlib.suppress(OSError, ValueError):
            # One write per line, so that lines of different threads are not interleaved.
            self._stream.write(line + b"\n")
            self._stream.flush()

    debug = info = warning = warn = error = critical = fatal = exception = log = msg


class _Factory:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __call__(self, *args: Any) -> _Lines:
        return _Lines(str(args[0]) if args else "", self._stream)


class _Bridge(logging.Handler):
    """Forwards records of the standard library to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(record.name)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        level = next((known for known in _LEVELS if record.levelno >= known), logging.DEBUG)
        logger.log(level, message.strip(), exc_info=record.exc_info or None)
