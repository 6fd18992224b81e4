"""Strategies for arbitrary JSON values."""

from __future__ import annotations

import hypothesis.strategies as st

from fivespot.apiserver.schema import compile_schema

WORDS = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=4)
OPEN = compile_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
