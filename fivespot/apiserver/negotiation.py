"""Content negotiation: the ``Accept`` header."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .status import not_acceptable

__all__ = ["Form", "aggregated_discovery", "form_of"]

_AVAILABLE: Final = "application/json"


class Form(enum.Enum):
    """The representations of objects and lists."""

    WHOLE = "whole"
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


@dataclass(frozen=True, slots=True)
class _Range:
    media: str
    parameters: dict[str, str]

    @property
    def json(self) -> bool:
        return self.media in {"application/json", "application/*", "*/*"}


@lru_cache(maxsize=256)
def _ranges(accept: str) -> tuple[_Range, ...]:
    found = []
    for number, part in enumerate(accept.split(",")):
        media, *given = (piece.strip() for piece in part.split(";"))
        parameters = {name.strip(): value.strip() for name, _, value in (each.partition("=") for each in given)}
        try:
            weight = float(parameters.pop("q", "1"))
        except ValueError:
            weight = 0.0
        if media and weight > 0:
            found.append((-weight, number, _Range(media.lower(), parameters)))
    found.sort(key=lambda item: item[:2])
    return tuple(each for _, _, each in found)


def form_of(accept: str, *, single: bool) -> Form:
    """The representation of the response.

    :param single: the response is one object, or the events of a watch.
    :raises StatusError: 406.
    """
    if not accept:
        return Form.WHOLE
    partial = "PartialObjectMetadata" if single else "PartialObjectMetadataList"
    for each in _ranges(accept):
        if not each.json:
            continue
        wanted = each.parameters.get("as", "")
        if not wanted:
            return Form.WHOLE
        if each.parameters.get("g") != "meta.k8s.io" or each.parameters.get("v") not in {"v1", "v1beta1"}:
            continue
        if wanted == "Table":
            return Form.TABLE
        if wanted in {partial, "PartialObjectMetadata"}:
            return Form.METADATA
    raise not_acceptable(_AVAILABLE)


def check_json(accept: str) -> None:
    """Refuse clients that do not accept JSON.

    :raises StatusError: 406.
    """
    if accept and not any(each.json for each in _ranges(accept)):
        raise not_acceptable(_AVAILABLE)


def aggregated_discovery(accept: str) -> str:
    """The preferred version of aggregated discovery; "" for plain discovery."""
    for each in _ranges(accept):
        if not each.json:
            continue
        if each.parameters.get("as") == "APIGroupDiscoveryList" and each.parameters.get("v") in {"v2", "v2beta1"}:
            return each.parameters["v"]
        if "as" not in each.parameters:
            return ""
    return ""
