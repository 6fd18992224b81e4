"""Random operations on both servers: responses and watch events must be equal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from controlplane import ControlPlane
from support.targets import Answer, Defined, EmbeddedServer, Target, embedded_target, real_target

EXAMPLES = int(os.environ.get("FIVESPOT_COMPARISONS", "12"))
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 9, "default": 2},
        "note": {"type": "string", "maxLength": 8, "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
        "fixed": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}},
            },
        },
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "entries": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"q": {"type": "string", "default": "d"}, "n": {"type": "integer", "format": "int32"}},
            },
        },
        "nullable": {"type": "string", "nullable": True},
        "amount": {"x-kubernetes-int-or-string": True},
        "host": {"type": "string", "format": "ipv4"},
        "resource": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}

NAMES = st.sampled_from(["a", "b"])
WORDS = st.sampled_from(["x", "y", "bad", "toolongtoo"])
PORT = st.fixed_dictionaries({}, optional={"name": st.sampled_from(["p", "q"]), "port": st.sampled_from([1, 2, "x"])})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "size": st.sampled_from([1, 2, 3, 99, "x", None]),
    "note": WORDS,
    "fixed": st.sampled_from(["x", "y"]),
    "tags": st.lists(st.sampled_from(["s", "t"]), max_size=3),
    "ports": st.lists(PORT, max_size=3),
    "map": st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from(["1", "2"]), max_size=2),
    "free": st.fixed_dictionaries({}, optional={"any": st.sampled_from([1, [1], {"z": 1}])}),
    "unknown": st.just(1),
    "entries": st.dictionaries(
        st.sampled_from(["e", "f"]),
        st.fixed_dictionaries({}, optional={"q": st.sampled_from(["1", None]), "n": st.sampled_from([1, 2**31, 1.0])}),
        max_size=2,
    ),
    "nullable": st.sampled_from(["x", None]),
    "amount": st.sampled_from([1, "1", 1.5, 10**19]),
    "host": st.sampled_from(["1.2.3.4", "x"]),
    "resource": st.fixed_dictionaries(
        {},
        optional={
            "apiVersion": st.sampled_from(["v1", "a/b/c"]),
            "kind": st.sampled_from(["X", "x y"]),
            "metadata": st.sampled_from([{"name": "n", "other": 1}, {"name": "N/N"}]),
            "any": st.sampled_from([1, None]),
        },
    ),
}
_APPLIED: Final = frozenset({"size", "note", "fixed", "tags", "ports", "map"})
"""Members that are applied too: the others can become null and invalid on the real server."""
SPECS = st.fixed_dictionaries({}, optional=FIELDS)
PATCHES = st.fixed_dictionaries({}, optional={name: st.none() | value for name, value in FIELDS.items()})
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.sampled_from(["l", "m"]), st.sampled_from(["1", "2", "-"]), max_size=2),
        "finalizers": st.lists(st.sampled_from(["example.com/f", "example.com/g"]), max_size=2, unique=True),
    },
)
VERSIONS = st.sampled_from(["none", "current", "stale"])
OPERATIONS = st.lists(
    st.sampled_from([
        {"op": "replace", "path": "/spec/size", "value": 4},
        {"op": "add", "path": "/spec/note", "value": "y"},
        {"op": "remove", "path": "/spec/note"},
        {"op": "remove", "path": "/metadata/finalizers"},
        {"op": "add", "path": "/spec/tags/-", "value": "t"},
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}},
        {"op": "remove", "path": "/spec"},
        {"op": "replace", "path": "/spec/host", "value": "1.2.3.4"},
        {"op": "add", "path": "/spec/size", "value": None},
        {"op": "add", "path": "/metadata/finalizers/-1", "value": "example.com/h"},
        {"op": "remove", "path": "/metadata/finalizers/-1"},
        {"op": "test", "path": "/spec/nullable"},
        {"op": "copy", "from": "/spec/note", "path": "/spec/nullable"},
    ]),
    min_size=1,
    max_size=3,
)  # fmt: skip


@pytest.fixture(scope="module")
def both(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[Target, Defined]]]:
    """Both servers with the same kind."""
    with EmbeddedServer(tmp_path_factory.mktemp("comparison")) as server:
        targets = [embedded_target(server, ""), real_target(control_plane)]
        pairs = [(target, target.define(SPEC, subresources={"status": {}})) for target in targets]
        yield pairs
        for target, defined in pairs:
            defined.remove()
            target.close()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def plain(value: Any, group: str) -> Any:
    """A response without fields that may differ: generated names, times, versions, the order of managedFields."""
    if isinstance(value, dict):
        kept = {
            key: plain(inner, group)
            for key, inner in value.items()
            if key not in {"uid", "resourceVersion", "time", "creationTimestamp", "message", "namespace"}
        }
        if "deletionTimestamp" in kept:
            kept["deletionTimestamp"] = "then"
        if isinstance(kept.get("managedFields"), list):
            kept["managedFields"] = sorted(kept["managedFields"], key=_canonical)
        if isinstance(kept.get("causes"), list):
            # The real server may tell a cause more than once.
            kept["causes"] = sorted({_canonical(cause) for cause in kept["causes"]})
        return kept
    if isinstance(value, list):
        return [plain(inner, group) for inner in value]
    return value.replace(group, "GROUP") if isinstance(value, str) else value


class Comparison(RuleBasedStateMachine):
    """Operations on a few Widgets."""

    pairs: list[tuple[Target, Defined]]

    @initialize()
    def start(self) -> None:
        self.paths = []
        self.first: list[str] = []
        self.versions: list[dict[str, list[str]]] = [{}, {}]
        for target, defined in self.pairs:
            path = defined.path(target.namespace())
            self.paths.append(path)
            self.first.append(target.get(path).ok()["metadata"]["resourceVersion"])

    def both(self, method: str, name: str, body: Any = None, suffix: str = "", **options: Any) -> None:
        """Send a request to both servers and compare the answers.

        :param body: may be a function of the number of the server.
        """
        answers: list[Answer] = []
        for number, (target, _) in enumerate(self.pairs):
            path = self.paths[number] + (f"/{name}" if name else "") + suffix
            sent = body(number) if callable(body) else body
            answer = target.request(method, path, sent, **options)
            if answer.status in {200, 201} and "metadata" in answer.body and name:
                version = answer.body["metadata"].get("resourceVersion")
                if version:
                    self.versions[number].setdefault(name, []).append(version)
            answers.append(answer)
        shown = [
            (each.status, each.warnings, plain(each.body, self.pairs[n][1].group)) for n, each in enumerate(answers)
        ]
        assert shown[0] == shown[1], f"\nembedded {shown[0]}\nreal     {shown[1]}\n{[each.message for each in answers]}"

    def body(self, name: str, spec: Any, metadata: Any, version: str = "none") -> Any:
        def made(number: int) -> Any:
            extra = dict(metadata)
            known = self.versions[number].get(name, [])
            if version != "none" and known:
                extra["resourceVersion"] = known[-1] if version == "current" else known[0]
            return self.pairs[number][1].body(name, spec, metadata=extra)

        return made

    @rule(name=NAMES, spec=SPECS, metadata=METADATA, dry=st.booleans())
    def create(self, name: str, spec: Any, metadata: Any, dry: bool) -> None:
        query = {"dryRun": "All"} if dry else {}
        made = self.body(name, spec, metadata)
        self.both("POST", "", made, query=query)
        if not dry:
            self.both("GET", name)

    @rule(name=NAMES, spec=SPECS, metadata=METADATA, version=VERSIONS)
    def replace(self, name: str, spec: Any, metadata: Any, version: str) -> None:
        self.both("PUT", name, self.body(name, spec, metadata, version))

    @rule(name=NAMES, spec=PATCHES, metadata=METADATA, status=st.booleans())
    def merge(self, name: str, spec: Any, metadata: Any, status: bool) -> None:
        patch: dict[str, Any] = {"metadata": metadata, "status": {"seen": spec.get("size")}}
        if not status:
            patch["spec"] = spec
        suffix = "/status" if status else ""
        self.both("PATCH", name, patch, suffix, content="application/merge-patch+json")

    @rule(name=NAMES, operations=OPERATIONS)
    def json_patch(self, name: str, operations: Any) -> None:
        self.both("PATCH", name, operations, content="application/json-patch+json")

    @rule(name=NAMES, spec=SPECS, metadata=METADATA, manager=st.sampled_from(["m1", "m2"]), force=st.booleans())
    def apply(self, name: str, spec: Any, metadata: Any, manager: str, force: bool) -> None:
        spec = {key: value for key, value in spec.items() if value not in (None, "x") and key in _APPLIED}
        # Something of its own in each: what the real server leaves of a part that it emptied is not to be copied.
        spec["map"] = {**spec.get("map", {}), manager: "1"}
        query = {"fieldManager": manager, **({"force": "true"} if force else {})}
        body = self.body(name, spec, {key: value for key, value in metadata.items() if value})
        self.both("PATCH", name, body, content="application/apply-patch+yaml", query=query)

    @rule(name=NAMES, precondition=st.booleans())
    def delete(self, name: str, precondition: bool) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if precondition:
            options["preconditions"] = {"resourceVersion": "1"}  # type: ignore[assignment]
        self.both("DELETE", name, options)

    @rule(selector=st.sampled_from(["", "l=1", "l!=1", "m in (1,2)", "!l"]))
    def look(self, selector: str) -> None:
        self.both("GET", "", query={"labelSelector": selector})

    def teardown(self) -> None:
        if not hasattr(self, "paths") or len(self.paths) < 2:
            return
        streams = []
        for number, (target, defined) in enumerate(self.pairs):
            target.patch(self.paths[number] + "/a", {"metadata": {"finalizers": None}})
            target.patch(self.paths[number] + "/b", {"metadata": {"finalizers": None}})
            target.request("DELETE", self.paths[number])
            target.create(self.paths[number], defined.body("end", {"size": 1})).ok()
            streams.append(self._events(target, defined, number))
            target.leave(self.paths[number].split("/")[5])
        short = [[(type_, body["metadata"]["name"]) for type_, body in stream] for stream in streams]
        assert short[0] == short[1]
        assert streams[0] == streams[1]

    def _events(self, target: Target, defined: Defined, number: int) -> list[Any]:
        seen = []
        with target.watch(self.paths[number], resourceVersion=self.first[number]) as events:
            while True:
                event = events.next()
                assert event is not None
                seen.append((event["type"], plain(event["object"], defined.group)))
                if event["object"]["metadata"]["name"] == "end":
                    return seen


def test_both_servers_answer_alike(both: list[tuple[Target, Defined]]) -> None:
    Comparison.pairs = both
    run_state_machine_as_test(
        Comparison,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=20,
            deadline=None,
            derandomize="FIVESPOT_COMPARISONS" not in os.environ,
            phases=[Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
