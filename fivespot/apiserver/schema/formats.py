"""String formats that kube-apiserver validates; it ignores others."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from datetime import date, datetime
from typing import Final

from fivespot.apiserver.names import label_problem, subdomain_problem

__all__ = ["FORMATS", "go_duration", "is_format"]

_DURATION: Final = re.compile(r"[-+]?(?:0|(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)"
                              r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))*)")  # fmt: skip
_COUNTED: Final = re.compile(r"\d+\s*([A-Za-zµ]+)")
_UNITS: Final = (
    ("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min"), ("h", "hr", "hour"),
    ("d", "day"), ("w", "wk", "week"),
)  # fmt: skip
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[-+]\d\d:\d\d)")
_MICRO: Final = re.compile(r".*\.\d{6}(?:[Zz]|[-+]\d\d:\d\d)")
_HOST: Final = re.compile(
    r"[A-Za-z0-9](?:-?[A-Za-z0-9]{0,62})|(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
)
_MAIL: Final = re.compile(r"[^<>@]*<[^@\s<>]+@[^@\s<>]+>|[^@\s<>]+@[^@\s<>]+")
_BYTE: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_MAC: Final = re.compile(
    r"[0-9a-fA-F]{2}([:-])[0-9a-fA-F]{2}(?:\1[0-9a-fA-F]{2}){4}(?:(?:\1[0-9a-fA-F]{2}){2}|(?:\1[0-9a-fA-F]{2}){14})?"
    r"|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2}(?:\.[0-9a-fA-F]{4})?|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){9}"
)
_UUID: Final = "[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_CARD: Final = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}"
)
_COLOUR: Final = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def go_duration(text: str) -> float | None:
    """Parse a Go duration such as ``1h30m`` to seconds; None when it is invalid."""
    if not _DURATION.fullmatch(text):
        return None
    sign = -1.0 if text.startswith("-") else 1.0
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", text)
    return sign * sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def _is_duration(text: str) -> bool:
    return _DURATION.fullmatch(text) is not None or any(_is_unit(found.group(1)) for found in _COUNTED.finditer(text))


def _is_unit(unit: str) -> bool:
    return any(unit.lower() in variants or unit.startswith(variants[-1]) for variants in _UNITS)


def _is_host(text: str) -> bool:
    # The pattern of kube-apiserver takes letters and symbols of all alphabets; the last part has letters only.
    plain = "".join(
        _PLAIN.get(unicodedata.category(letter)[0], "-") if letter not in ".-" else letter for letter in text
    )
    shown = "".join(plain[n] if not letter.isascii() or plain[n] == "0" else letter for n, letter in enumerate(text))
    return _HOST.fullmatch(shown) is not None and len(text.encode()) <= 255 and max(map(len, text.split("."))) <= 63


_PLAIN: Final = {"L": "a", "S": "0", "N": "0"}


def _is_isbn(text: str, size: int) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if size == 10:
        if not re.fullmatch(r"\d{9}[\dX]", digits):
            return False
        return sum((10 - n) * (10 if each == "X" else int(each)) for n, each in enumerate(digits)) % 11 == 0
    if not re.fullmatch(r"\d{13}", digits):
        return False
    return sum(int(each) * (3 if n % 2 else 1) for n, each in enumerate(digits)) % 10 == 0


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(each) * (1 + n % 2) for n, each in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _is_sloppy_ipv4(text: str) -> bool:
    return _is_ip(ipaddress.IPv4Address)(re.sub(r"(?<!\d)0+(?=\d)", "", text))


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


def _is_uuid(version: str = "[0-9a-f]", variant: str = "[0-9a-f]") -> Callable[[str], bool]:
    return _matches(f"(?i:{_UUID % (version, variant)})")


def is_format(name: str, schema_type: str) -> bool:
    """Whether schemas of a type may have a format."""
    if schema_type == "integer":
        return name in {"int32", "int64"}
    if schema_type == "number":
        return name in {"float", "double"}
    return schema_type in {"", "string"} and name.replace("-", "") in _FORMAT_NAMES


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "base64": lambda text: not text or _BYTE.fullmatch(text) is not None,
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "byte": lambda text: _BYTE.fullmatch(text) is not None,
    "cidr": _is_network,
    "creditcard": _is_card,
    "date": _is_date,
    "date-time": _is_time,
    "datetime": _is_time,
    "duration": _is_duration,
    "email": lambda text: _MAIL.fullmatch(text) is not None,
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_host,
    "ipv4": _is_sloppy_ipv4,
    "ipv6": _is_ip(ipaddress.IPv6Address),
    "isbn": lambda text: _is_isbn(text, 10) or _is_isbn(text, 13),
    "isbn10": lambda text: _is_isbn(text, 10),
    "isbn13": lambda text: _is_isbn(text, 13),
    "k8s-long-name": lambda text: not subdomain_problem(text),
    "k8s-short-name": lambda text: not label_problem(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "micro-time": lambda text: _is_time(text) and _MICRO.fullmatch(text) is not None,
    "password": lambda _: True,
    "rgbcolor": _matches(rf"rgb\({_COLOUR},{_COLOUR},{_COLOUR}\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": lambda text: re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text) is not None or text.startswith("/"),
    "uuid": _is_uuid(),
    "uuid3": _is_uuid("3"),
    "uuid4": _is_uuid("4", "[89ab]"),
    "uuid5": _is_uuid("5", "[89ab]"),
}
"""Checks by format."""
_FORMAT_NAMES: Final = frozenset(name.replace("-", "") for name in FORMATS if name not in {"base64", "micro-time"})
