"""The writer of a field, read from managedFields of any shape."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.runtime.objects import field_writer

Json = dict[str, Any]


def body(*entries: Any) -> Json:
    return {"metadata": {"managedFields": list(entries)}}


def entry(manager: str, time: str, fields: Json, **more: Any) -> Json:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields, **more}


KILLED: Json = {"f:spec": {"f:killSwitch": {}}}
NIGHT: Json = {"f:spec": {"f:overrides": {'k:{"name":"night"}': {".": {}, "f:active": {}}}}}


def test_the_last_of_the_managers_of_a_field_is_named() -> None:
    found = body(
        entry("helm", "2026-11-30T08:00:00Z", KILLED),
        entry("kubectl-patch", "2026-11-30T09:00:00Z", KILLED),
        entry("argocd", "2026-11-30T10:00:00Z", NIGHT),
        entry("5spot-controller", "2026-11-30T11:00:00Z", KILLED, subresource="status"),
    )
    assert str(field_writer(found, "spec", "killSwitch")) == "set by kubectl-patch at 2026-11-30T09:00:00Z"
    assert str(field_writer(found, "spec")) == "set by argocd at 2026-11-30T10:00:00Z"
    assert str(field_writer(found, "spec", "overrides", 'k:{"name":"night"}')).startswith("set by argocd")
    assert field_writer(found, "spec", "overrides", 'k:{"name":"day"}') is None
    assert field_writer(found, "spec", "enabled") is None


@pytest.mark.parametrize(
    "found",
    [{}, {"metadata": None}, {"metadata": {"managedFields": {}}}, body(1, None, "x", {}), body(entry("", "", KILLED)),
     body({"manager": 1, "fieldsV1": KILLED}), body(entry("x", "", {"f:spec": 1}))],
)  # fmt: skip
def test_what_does_not_tell_is_nobody(found: Json) -> None:
    assert field_writer(found, "spec", "killSwitch") is None


def test_a_hostile_name_is_shown_short_and_clean() -> None:
    writer = field_writer(body(entry("\x1b[31m" + "x" * 5000, "now\n", KILLED)), "spec")
    assert writer is not None
    assert str(writer).isprintable()
    assert len(str(writer)) < 300
