"""What is kept of an object: everything but managedFields, however the JSON is written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import FULL, decode_meta

_names = st.sampled_from(["a", "managedFields", ',"managedFields":', "metadata", 'x"managedFields', "z"])
_values = st.recursive(
    st.none() | st.integers(0, 3) | _names,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
_objects = st.dictionaries(_names, _values, max_size=3)
_metadata = st.fixed_dictionaries({}, optional={"name": st.just("n"), "managedFields": _values, "uid": st.just("u")})


@given(before=_objects, metadata=_metadata, after=_objects, compact=st.booleans(), decoded=st.booleans())
def test_managed_fields_are_cut_out_and_nothing_else(
    before: dict[str, Any], metadata: dict[str, Any], after: dict[str, Any], compact: bool, decoded: bool
) -> None:
    body = before | {"metadata": metadata} | {name: value for name, value in after.items() if name != "metadata"}
    raw = json.dumps(body, separators=(",", ":") if compact else None).encode()
    kept = FULL.project(raw, decode_meta(raw) if decoded else None)
    assert json.loads(kept) == body | {"metadata": {n: v for n, v in metadata.items() if n != "managedFields"}}
    assert FULL.project(msgspec.Raw(raw)) == kept


def test_what_is_kept_pins_no_buffer_of_a_page() -> None:
    page = msgspec.json.decode(b'[{"metadata":{"name":"n"}}]', type=list[msgspec.Raw])
    assert type(FULL.project(page[0])) is bytes


@pytest.mark.parametrize("raw", [b"[1]", b'{"metadata":3}', b'{"metadata":{}', b"\xff"])
def test_what_is_no_object_cannot_be_kept(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="full"):
        FULL.project(raw)
