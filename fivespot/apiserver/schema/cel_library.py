"""Functions of Kubernetes' CEL library."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = ["FUNCTIONS", "Function", "parse_quantity"]

_FACTORS: Final = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"), "P": Decimal("1e15"),
    "E": Decimal("1e18"), "Ki": Decimal(2) ** 10, "Mi": Decimal(2) ** 20, "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40, "Pi": Decimal(2) ** 50, "Ei": Decimal(2) ** 60,
}  # fmt: skip
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?")


@dataclass(frozen=True, slots=True)
class Function:
    """An overload: CEL types of arguments and result; members are called on their first argument."""

    name: str
    takes: Sequence[str]
    returns: str
    call: Callable[..., Any]
    member: bool = True


def parse_quantity(text: str) -> Decimal:
    """Parse a quantity such as ``500Mi``.

    :raises ValueError: it is not a quantity.
    """
    found = _QUANTITY.fullmatch(text)
    if not found:
        raise ValueError(f"quantities must match the regular expression of a quantity: {text!r}")
    try:
        return Decimal(found.group(1)) * _FACTORS[found.group(2) or ""]
    except InvalidOperation as error:
        raise ValueError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _is_sorted(values: Sequence[Any]) -> bool:
    return all(values[number] <= values[number + 1] for number in range(len(values) - 1))


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [found.group() for found in re.finditer(pattern, text)]


def _index(values: Sequence[Any], wanted: Any) -> int:
    return list(values).index(wanted) if wanted in list(values) else -1


def _last_index(values: Sequence[Any], wanted: Any) -> int:
    found = [number for number, value in enumerate(values) if value == wanted]
    return found[-1] if found else -1


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


FUNCTIONS: Final = (
    Function("isSorted", ("LIST",), "BOOL", _is_sorted),
    Function("sum", ("LIST",), "DYN", lambda values: sum(values) if values else 0),
    Function("min", ("LIST",), "DYN", min),
    Function("max", ("LIST",), "DYN", max),
    Function("indexOf", ("LIST", "DYN"), "INT", _index),
    Function("lastIndexOf", ("LIST", "DYN"), "INT", _last_index),
    Function("find", ("STRING", "STRING"), "STRING", _find),
    Function("findAll", ("STRING", "STRING"), "LIST", _find_all),
    Function("isURL", ("STRING",), "BOOL", _is_url, member=False),
    Function("isIP", ("STRING",), "BOOL", _is_ip, member=False),
    Function("isCIDR", ("STRING",), "BOOL", _is_cidr, member=False),
    Function("isQuantity", ("STRING",), "BOOL", _is_quantity, member=False),
)
