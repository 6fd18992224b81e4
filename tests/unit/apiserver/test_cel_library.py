"""Functions of the CEL library."""

from __future__ import annotations

import pytest

from fivespot.apiserver.schema.cel_library import parse_quantity


@pytest.mark.parametrize(
    ("text", "number"), [("500m", 0.5), ("1Ki", 1024), ("2", 2), ("1e3", 1000), (".5", 0.5), ("3M", 3e6)]
)
def test_quantities(text: str, number: float) -> None:
    assert float(parse_quantity(text)) == number
