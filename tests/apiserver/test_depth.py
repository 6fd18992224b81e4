"""Objects that are nested deeply."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.targets import CONTENT, Defined, Target

SPEC = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "x-kubernetes-preserve-unknown-fields": True,
    "x-kubernetes-validations": [{"rule": "!has(self.n) || self.n < 9"}],
}


@pytest.fixture(scope="module")
def defined(target: Target) -> Iterator[Defined]:
    made = target.define(SPEC)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def widgets(target: Target, defined: Defined) -> str:
    return defined.path(target.namespace())


def arrays(depth: int) -> str:
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def widget(defined: Defined, name: str, value: str) -> str:
    head = f'"apiVersion":"{defined.group}/v1","kind":"Widget","metadata":{{"name":"{name}"}}'
    return f'{{{head},"spec":{{"x":{value}}}}}'


@pytest.mark.parametrize(
    "value",
    [pytest.param(arrays(4000), id="arrays"), pytest.param(objects(1500), id="objects")],
)
def test_a_deep_object_is_written_read_and_changed(target: Target, defined: Defined, widgets: str, value: str) -> None:
    body = widget(defined, "deep", value)
    path = f"{widgets}/deep"
    assert target.create(widgets, body).status == 201
    assert f'"x":{value}'.encode() in target.get(path).raw
    assert target.patch(path, '{"spec":{"n":1}}').status == 200
    assert target.patch(path, '{"spec":{"n":10}}').status == 422
    assert target.patch(path, '[{"op":"add","path":"/spec/n","value":2}]', "json").status == 200
    assert target.patch(path, f'{{"spec":{{"y":{value}}}}}').status == 200
    assert target.patch(path, body, "apply", fieldManager="m", force="true").status == 200
    whole = target.get(path)
    assert whole.raw.count(value.encode()) == 2
    assert target.put(path, whole.raw.replace(b'"n":2', b'"n":3')).status == 200
    assert target.get(widgets).status == 200
    with target.watch(widgets, resourceVersion="0") as events:
        assert value in events.next_line().decode()
    assert target.delete(path).status == 200


@pytest.mark.parametrize("depth", [9_990, 10_001])
def test_unknown_fields_are_dropped_at_any_depth_that_can_be_read(target: Target, maps: str, depth: int) -> None:
    for value in (arrays(depth), objects(depth)):
        body = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"generateName":"a-"}},"x":{value}}}'
        answer = target.request("POST", maps, body)
        assert answer.status == (201 if depth < 10_000 else 400)
        if depth > 10_000:
            assert "exceeded max depth" in answer.message


def test_a_patch_that_is_too_deep(target: Target, defined: Defined, widgets: str) -> None:
    target.create(widgets, defined.body("flat", {"n": 1})).ok()
    for how in CONTENT:
        if how != "strategic":
            patch = f'{{"spec":{{"x":{arrays(10_001)}}}}}'
            query = {"fieldManager": "m"} if how == "apply" else {}
            assert target.patch(f"{widgets}/flat", patch, how, **query).status == 400
