"""B4.8: what an embedded object holds stays out of what the API server says about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.controllers.scheduledmachine.redact import conceal
from fivespot.runtime import ApiError, ForbiddenError, InvalidError
from fivespot.runtime.errors import ServerError, StatusCause

SECRET = "hunter2-hunter2"
REQUEST = "create standinmachines prod/web"


def embedded(value: Any = SECRET) -> dict[str, Any]:
    return {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "web"}, "spec": {"users": [{"password": value}]}}


def invalid(*causes: StatusCause) -> InvalidError:
    listed = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
    return InvalidError(422, "Invalid", f'K "web" is invalid: [{listed}]', request=REQUEST, causes=causes)


@pytest.mark.contract("B4.8")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            f"Invalid value: \"{SECRET}\": spec.pin in body should match '^[0-9]+$'",
            "Invalid value (hidden): spec.pin in body should match '^[0-9]+$'",
        ),
        ('Invalid value: "abc": too short', "Invalid value (hidden): too short"),
        (r'Invalid value: "a\"b": bad', "Invalid value (hidden): bad"),
        ('Invalid value: "it never ends', "Invalid value (hidden)"),
        ("Invalid value: 17: must be text", "Invalid value (hidden): must be text"),
        (
            'Unsupported value: "abc": supported values: "x", "y"',
            'Unsupported value (hidden): supported values: "x", "y"',
        ),
        (f'Invalid value: {{"password":"{SECRET}"}}: bad', "Invalid value (hidden): bad"),
        ("Required value", "Required value"),
        (f"a rule in its own words about {SECRET}", "a rule in its own words about (hidden)"),
    ],
)
def test_a_refused_value_is_not_repeated(said: str, told: str) -> None:
    found = conceal(invalid(StatusCause("FieldValueInvalid", said, "spec.pin")), embedded())
    assert found.message == f"spec.pin: {told}"
    assert [cause.message for cause in found.causes] == [told]


@pytest.mark.contract("B4.8")
def test_all_else_of_an_error_is_kept() -> None:
    error = ServerError(500, "InternalError", f"webhook: {SECRET}", request=REQUEST, retry_after=3.0)
    found = conceal(error, embedded())
    assert type(found) is ServerError
    assert (found.status, found.reason, found.request, found.retry_after) == (500, "InternalError", REQUEST, 3.0)
    assert str(found) == f"{REQUEST}: 500 InternalError: webhook: (hidden)"


@pytest.mark.contract("B4.8")
@pytest.mark.parametrize(
    "value",
    ["first line\nsecond line", 'quoted "inside" here', "tab\there", 123456, 3.14159, "  spaced   out  "],
    ids=repr,
)
def test_a_value_is_known_in_every_form_that_a_message_gives_it(value: Any) -> None:
    text = str(value)
    for form in (text, " ".join(text.split()), json.dumps(text, ensure_ascii=False)[1:-1]):
        error = ForbiddenError(403, "Forbidden", f"denied: {form}!", request=REQUEST)
        assert conceal(error, embedded(value)).message == "denied: (hidden)!"


@pytest.mark.contract("B4.8")
@pytest.mark.parametrize("kept", range(4, len(SECRET) + 1))
def test_a_value_that_was_cut_in_half_is_not_told_either(kept: int) -> None:
    error = ForbiddenError(403, "Forbidden", f"denied: {SECRET[:kept]}…", request=REQUEST)
    assert conceal(error, embedded()).message == "denied: (hidden)…"


_TEXT = 'aB0 .:"\\\n\té'


@pytest.mark.contract("B4.8")
@given(
    secret=st.text(_TEXT, min_size=4, max_size=12),
    before=st.text(_TEXT, max_size=12),
    after=st.text(_TEXT, max_size=12),
)
def test_no_message_holds_a_value(secret: str, before: str, after: str) -> None:
    error = ApiError(418, "", f"{before}{secret}{after}", request=REQUEST)
    assert secret not in conceal(error, embedded(secret)).message
