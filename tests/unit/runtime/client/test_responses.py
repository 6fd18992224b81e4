"""Answers turned into values and errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime import errors
from fivespot.runtime.client.responses import (
    decode_object,
    decode_page,
    decode_status,
    failure,
    is_kind,
    is_removed,
    one_line,
    parse_retry_after,
    warning_texts,
)
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import Object, Resource
from support.faulty_servers import status_body

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def as_json(body: object) -> bytes:
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "reason", "message", "wait"),
    [
        (404, {}, b"404 page not found\n", errors.NotServedError, "", "404 page not found", None),
        (404, {}, as_json(status_body(404, "NotFound", "gone")), errors.NotServedError, "NotFound", "gone", None),
        (404, {}, as_json(status_body(404, "NotFound", name="a")), errors.NotFoundError, "NotFound", "no", None),
        (410, {}, as_json(status_body(410, "Expired", "old")), errors.GoneError, "Expired", "old", None),
        (410, {}, as_json(status_body(410, "Gone", "old")), errors.GoneError, "Gone", "old", None),
        (409, {}, as_json(status_body(409, "Conflict")), errors.ConflictError, "Conflict", "no", None),
        (409, {}, as_json(status_body(409, "AlreadyExists")), errors.AlreadyExistsError, "AlreadyExists", "no", None),
        (429, {"retry-after": "7"}, b"too many\r\nrequests", errors.ThrottledError, "", "too many requests", 7.0),
        (429, {}, as_json(status_body(429, "X", retryAfterSeconds=3)), errors.ThrottledError, "X", "no", 3.0),
        (
            504,
            {},
            as_json(status_body(504, "Timeout", retryAfterSeconds=1)),
            errors.ServerTimeoutError,
            "Timeout",
            "no",
            1.0,
        ),
        (503, {"retry-after": "2"}, b"", errors.ServerError, "", "no message", 2.0),
        (
            502,
            {},
            b"<html><head><TITLE>502 Bad\nGateway</TITLE></head><p>x",
            errors.ServerError,
            "",
            "502 Bad Gateway",
            None,
        ),
        (401, {}, as_json(status_body(401, "Unauthorized")), errors.UnauthorizedError, "Unauthorized", "no", None),
        (403, {}, as_json({"error": "x"}), errors.ForbiddenError, "", '{"error": "x"}', None),
        (500, {}, b"\xff\xfe", errors.ServerError, "", "\ufffd\ufffd", None),
        (302, {}, b"", errors.ApiError, "", "no message", None),
        (
            400,
            {},
            as_json({"kind": "Status", "code": "x"}),
            errors.BadRequestError,
            "",
            '{"kind": "Status", "code": "x"}',
            None,
        ),
    ],
)
def test_every_failing_answer_becomes_a_typed_error_whatever_its_body(
    status: int,
    headers: dict[str, str],
    body: bytes,
    kind: type[errors.ApiError],
    reason: str,
    message: str,
    wait: float | None,
) -> None:
    """nolar/kopf#1229: a 429 that carries text, with Retry-After in the header."""
    error = failure(status, headers, body, "get things", NOW)
    assert type(error) is kind
    assert (error.status, error.reason, error.message, error.retry_after) == (status, reason, message, wait)
    assert str(error).startswith("get things: ")


@pytest.mark.parametrize(
    ("body", "name", "error_type"),
    [
        (status_body(404, "NotFound", name="web"), "web", errors.NotFoundError),
        (status_body(404, "NotFound", name="prod"), "", errors.NotFoundError),
        (status_body(404, "NotFound", name="other"), "web", errors.NotServedError),
        (status_body(404, "NotFound", group="x"), "web", errors.NotServedError),
        (status_body(404, "NotFound"), "web", errors.NotServedError),
        (status_body(404, "", name="web"), "web", errors.NotServedError),
    ],
)
def test_only_a_status_that_names_the_object_says_that_it_is_gone(
    body: dict[str, Any], name: str, error_type: type[errors.ApiError]
) -> None:
    assert type(failure(404, {}, as_json(body), "get x", NOW, name=name)) is error_type


def test_the_header_goes_before_the_seconds_in_the_status() -> None:
    body = as_json(status_body(429, "TooManyRequests", retryAfterSeconds=30))
    assert failure(429, {"retry-after": "4"}, body, "x", NOW).retry_after == 4.0


def test_field_errors_keep_their_paths() -> None:
    body = status_body(
        422, "Invalid", causes=[{"reason": "FieldValueInvalid", "message": "a\n b", "field": "spec.x"}, {}]
    )
    error = failure(422, {}, as_json(body), "create x", NOW)
    assert isinstance(error, errors.InvalidError)
    assert error.causes == (
        errors.StatusCause("FieldValueInvalid", "a b", "spec.x"),
        errors.StatusCause("", "", ""),
    )


def test_a_message_is_cut_and_has_no_line_breaks() -> None:
    error = failure(500, {}, b"line\n" * 100_000, "x", NOW)
    assert len(error.message) <= 1000
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        (" 12 ", 12.0),
        ("-3", None),
        ("soon", None),
        ("1.5", None),
        (format_datetime(datetime(2026, 1, 5, 12, 0, 9, tzinfo=UTC), usegmt=True), 9.0),
        (format_datetime(datetime(2026, 1, 5, 11, tzinfo=UTC), usegmt=True), 0.0),
        ("Mon, 05 Jan 2026 12:00:30", 30.0),
    ],
)
def test_retry_after_is_seconds_or_an_http_date(value: str | None, expected: float | None) -> None:
    assert parse_retry_after(value, NOW) == expected


@given(st.text(max_size=40))
def test_no_retry_after_header_breaks_the_parser(value: str) -> None:
    wait = parse_retry_after(value, NOW)
    assert wait is None or wait >= 0


def test_warnings_are_unquoted_and_split() -> None:
    header = '299 - "unknown field \\"spec.foo\\"", 299 kube "use v2, not v1"'
    assert warning_texts(header) == ['unknown field "spec.foo"', "use v2, not v1"]
    assert warning_texts(None) == []


def test_only_a_status_is_a_status() -> None:
    assert decode_status(as_json(status_body(404, "NotFound", name="web"))).object_name == "web"  # type: ignore[union-attr]
    assert decode_status(as_json(status_body(404, "NotFound"))).object_name == ""  # type: ignore[union-attr]
    for body in (b"", b"{}", b"[]", b"null", as_json({"kind": "Pod", "metadata": {}})):
        assert decode_status(body) is None


def test_a_page_says_where_the_next_one_begins() -> None:
    body = {"metadata": {"resourceVersion": "7", "continue": "abc", "remainingItemCount": 3}, "items": [{"a": 1}]}
    page = decode_page(as_json(body), "list x")
    assert (page.continue_token, page.version, page.remaining) == ("abc", "7", 3)
    assert [bytes(item) for item in page.items] == [b'{"a": 1}']


def test_a_page_may_have_null_for_items() -> None:
    """Typed lists of Go are encoded as null when they are empty."""
    page = decode_page(b'{"metadata":{"resourceVersion":"7"},"items":null}', "list x")
    assert (page.items, page.continue_token, page.remaining) == ([], "", None)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"404 page not found", b'{"metadata":{},"items":{}}'])
def test_what_is_no_list_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(errors.ProtocolError, match="list x"):
        decode_page(body, "list x")


def test_an_object_never_stored_is_accepted_for_a_dry_run_only() -> None:
    body = as_json({"metadata": {"name": "web", "namespace": "prod"}})
    obj = decode_object(body, "create x", dry_run=True)
    assert (obj.key, obj.head.version, obj.raw) == (("prod", "web"), 0, body)
    with pytest.raises(errors.ProtocolError, match="create x"):
        decode_object(body, "create x")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"metadata":null}', b'{"metadata":{}}'])
def test_garbage_is_no_object_even_in_a_dry_run(body: bytes) -> None:
    with pytest.raises(errors.ProtocolError, match="create x"):
        decode_object(body, "create x", dry_run=True)


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_one_line_is_bounded_and_flat(text: str, limit: int) -> None:
    flat = one_line(text, limit)
    assert len(flat) <= limit
    assert len(flat.splitlines()) <= 1


DEEP = b"[" * 20_000 + b"]" * 20_000
GOOD = b'{"metadata":{"name":"good","uid":"u","resourceVersion":"7"}}'


@pytest.mark.parametrize(
    "bad", [b'{"spec":%b}' % DEEP, b'{"spec":nul}', b'{"metadata":{"generation":%b}}' % (b"1" * 5_000), b"3"]
)
@pytest.mark.parametrize(
    "form",
    [
        b'{"metadata":{"resourceVersion":"9","continue":"t"},"items":[%b]}',
        b'{"items" : [%b ],"metadata":{"resourceVersion":"9","continue":"t"}}\n',
    ],
)
def test_one_item_that_cannot_be_decoded_hides_no_other(form: bytes, bad: bytes) -> None:
    page = decode_page(form % b", ".join([GOOD, bad, GOOD]), "list x")
    assert [bytes(item) for item in page.items] == [GOOD, bad, GOOD]
    assert (page.version, page.continue_token) == ("9", "t")


@pytest.mark.parametrize("body", [DEEP, b'{"metadata":%b,"items":[]}' % DEEP, b'{"metadata":{},"items":%b' % DEEP])
def test_a_deep_answer_that_is_no_list_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="list x"):
        decode_page(body, "list x")


LONG_INTEGER = b"1" * 5_000


@pytest.mark.parametrize(
    "body", [DEEP, b'{"kind":"Status","code":%b}' % LONG_INTEGER, b'{"kind":"Status","details":%b}' % DEEP]
)
def test_what_cannot_be_decoded_is_no_status_and_still_a_typed_error(body: bytes) -> None:
    assert decode_status(body) is None
    assert failure(500, {}, body, "get x", NOW).status == 500


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        b'{"metadata":%b}' % DEEP,
        b'{"metadata":{"name":"x","uid":"u","resourceVersion":"%b"}}' % LONG_INTEGER,
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_deep_answer_that_is_no_object_is_a_protocol_error(body: bytes, dry_run: bool) -> None:
    with pytest.raises(ProtocolError, match="get x"):
        decode_object(body, "get x", dry_run=dry_run)


NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "removed"),
    [
        ("v1", "Namespace", {"finalizers": ["kubernetes"]}, False),
        ("v1", "Namespace", {"finalizers": []}, True),
        ("v1", "Namespace", {"finalizers": None}, True),
        ("v1", "Namespace", {}, True),
        ("v1", "ConfigMap", {"finalizers": ["x"]}, True),
        ("example.com/v1", "Namespace", {"finalizers": ["x"]}, True),
    ],
)
def test_a_terminating_namespace_exists_while_its_spec_has_finalizers(
    api_version: str, kind: str, spec: dict[str, object], removed: bool
) -> None:
    metadata = {"name": "n", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "2027-01-31T06:00:00Z"}
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    assert is_removed(Object.parse(as_json(body))) is removed


def test_a_grace_period_or_a_finalizer_keeps_an_object_that_cannot_be_decoded() -> None:
    metadata = b'"name":"n","uid":"u","resourceVersion":"7","deletionTimestamp":"2027-01-31T06:00:00Z"'
    form = b'{"kind":"Pod","metadata":{%b%b},"spec":%b}'
    assert is_removed(Object.parse(form % (metadata, b"", DEEP)))
    assert not is_removed(Object.parse(form % (metadata, b',"deletionGracePeriodSeconds":30', DEEP)))
    assert not is_removed(Object.parse(form % (metadata, b',"finalizers":["a/b"]', DEEP)))
    assert is_kind(Object.parse(form % (metadata, b"", DEEP)), Resource("", "v1", "pods", "Pod"))
