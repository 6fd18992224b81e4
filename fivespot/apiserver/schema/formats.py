"""String formats that kube-apiserver validates; it ignores others."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date, datetime
from typing import Final

__all__ = ["FORMATS", "go_duration"]

_DURATION: Final = re.compile(r"[-+]?(?:0|(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)"
                              r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))*)")  # fmt: skip
_ISO_DURATION: Final = re.compile(r"P(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)")
_WORDY_DURATION: Final = re.compile(r"(?:\s*\d+(?:\.\d+)?\s*[a-zµμ]+)+", re.IGNORECASE)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[-+]\d\d:\d\d)")
_MICRO: Final = re.compile(r".*\.\d{6}(?:[Zz]|[-+]\d\d:\d\d)")
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[a-zA-Z0-9_](?:[-a-zA-Z0-9_.]*[a-zA-Z0-9_])?\.?")
_MAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def go_duration(text: str) -> float | None:
    """Parse a Go duration such as ``1h30m`` to seconds; None when it is invalid."""
    if not _DURATION.fullmatch(text):
        return None
    sign = -1.0 if text.startswith("-") else 1.0
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", text)
    return sign * sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def _is_duration(text: str) -> bool:
    if _DURATION.fullmatch(text) or (len(text) > 1 and _ISO_DURATION.fullmatch(text)):
        return True
    return _WORDY_DURATION.fullmatch(text) is not None


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(re.sub(r"\.\d+", "", text).upper())
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_ip(kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower() or text.replace("-", "").lower() == uuid.UUID(text).hex
    except ValueError:
        return False


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": _is_base64,
    "cidr": _is_network,
    "date": _is_date,
    "date-time": _is_time,
    "datetime": _is_time,
    "duration": _is_duration,
    "email": lambda text: _MAIL.fullmatch(text) is not None,
    "hostname": lambda text: _HOST.fullmatch(text) is not None,
    "micro-time": lambda text: _is_time(text) and _MICRO.fullmatch(text) is not None,
    "ipv4": _is_ip(ipaddress.IPv4Address),
    "ipv6": _is_ip(ipaddress.IPv6Address),
    "uri": lambda text: re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text) is not None or text.startswith("/"),
    "uuid": _is_uuid,
}
"""Checks by format."""
