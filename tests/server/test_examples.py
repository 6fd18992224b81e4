"""The tutorial and the examples of the library do what they say, as programs of their own on the real API server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Api, ApiError, ControlPlane
from support import eventually, make_namespace
from support.doc_pages import python_files
from support.programs import Program

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
OVERVIEW = REPOSITORY / "docs" / "runtime" / "README.md"
TUTORIAL = REPOSITORY / "docs" / "runtime" / "tutorial.md"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")

Start = Callable[..., Program]


@pytest.fixture
def start(control_plane: ControlPlane, tmp_path: Path, place: str) -> Iterator[Start]:
    """Starts a program in this test's namespace; what is still running at the end is stopped."""
    started: list[Program] = []
    kubeconfig = control_plane.kubeconfig(tmp_path / "kubeconfig")

    def begin(file: Path, *arguments: str) -> Program:
        log = tmp_path / f"{len(started)}.log"
        given = () if file.parent == tmp_path else ("--kubeconfig", str(kubeconfig), "--namespace", place)
        started.append(Program(file, log, *given, *arguments, kubeconfig=kubeconfig))
        return started[-1]

    try:
        yield begin
        for program in started:
            program.stop()
            assert not [line for line in program.lines if "Traceback" in line or " CRITICAL " in line]
    finally:
        for program in started:
            program.kill()


@pytest.fixture
def place(request: pytest.FixtureRequest, api: Api) -> Iterator[str]:
    name = make_namespace(api, request.node.name, cluster=None)
    yield name
    api.delete("v1", "Namespace", name, missing_ok=True)


@contextmanager
def kind_of_ours(api: Api, name: str) -> Iterator[None]:
    """Removes a definition that a program under test installed."""
    try:
        yield
    finally:
        api.delete(*CRD, name, missing_ok=True)


def create_when_served(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    def attempt() -> dict[str, Any]:
        try:
            return api.create(body)
        except ApiError as error:
            raise AssertionError(str(error)) from error

    return eventually(attempt, 30)


def config_map(api: Api, place: str, name: str, labels: dict[str, str], **fields: Any) -> None:
    metadata = {"name": name, "namespace": place, "labels": labels, **fields.pop("metadata", {})}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields})


def data_of(api: Api, place: str, name: str) -> dict[str, str]:
    found = api.find("v1", "ConfigMap", name, place)
    data: dict[str, str] = (found or {}).get("data", {})
    return data


def uid_of(api: Api, place: str, name: str) -> str:
    """Of a ConfigMap; "" when there is none."""
    found = api.find("v1", "ConfigMap", name, place)
    return str(found["metadata"]["uid"]) if found else ""


def definition(group: str, kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": CRD[0],
        "kind": CRD[1],
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


# Hello world -----------------------------------------------------------------------------------------------------


def lines_of_code(page: Path, name: str) -> int:
    return len([line for line in python_files(page)[name].splitlines() if line.strip()])


def test_hello_world_and_the_tutorial_are_as_short_as_the_pages_say() -> None:
    assert lines_of_code(OVERVIEW, "notes.py") <= 30
    assert lines_of_code(TUTORIAL, "roster.py") <= 80


def test_hello_world_owns_a_child_and_reports_what_the_server_refuses(
    api: Api, place: str, start: Start, tmp_path: Path
) -> None:
    program = tmp_path / "notes.py"
    program.write_text(python_files(OVERVIEW)["notes.py"])
    note = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "one", "namespace": place}}

    def status() -> dict[str, Any]:
        found: dict[str, Any] = api.get("example.com/v1", "Note", "one", place).get("status", {})
        return found

    with kind_of_ours(api, "notes.example.com"):
        crd = definition("example.com", "Note")
        crd["spec"]["versions"][0]["subresources"] = {"status": {}}
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] = True
        api.create(crd)
        create_when_served(api, {**note, "spec": {"text": "hello"}})
        start(program)
        eventually(lambda: data_of(api, place, "one") == {"text": "hello"}, 30)
        eventually(lambda: status() == {"stored": True})

        api.patch("example.com/v1", "Note", "one", place, {"spec": {"not a key": "x"}})
        eventually(lambda: status().get("stored") is False and "not a key" in status()["message"])
        assert data_of(api, place, "one") == {"text": "hello"}

        api.patch("example.com/v1", "Note", "one", place, {"spec": {"not a key": None, "text": "bye"}})
        eventually(lambda: data_of(api, place, "one") == {"text": "bye"}, 30)
        eventually(lambda: status() == {"stored": True})


# The tutorial ----------------------------------------------------------------------------------------------------


def test_the_tutorial_makes_a_controller_that_does_what_the_page_says(
    api: Api, kubectl: Callable[..., str], place: str, start: Start, tmp_path: Path
) -> None:
    program = tmp_path / "roster.py"
    program.write_text(python_files(TUTORIAL)["roster.py"])
    manifest = re.findall(r"^```yaml\n(.*?)^```$", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    crew = yaml.safe_load(manifest[0])
    crew["metadata"]["namespace"] = place

    with kind_of_ours(api, "rosters.example.com"):
        running = start(program)
        create_when_served(api, crew)
        eventually(lambda: data_of(api, place, "crew-roster") == {"members": "ann\nzoe"})
        first = uid_of(api, place, "crew-roster")
        api.delete("v1", "ConfigMap", "crew-roster", place)
        eventually(lambda: uid_of(api, place, "crew-roster") not in {"", first})

        shown = kubectl("get", "rosters", "-n", place)
        assert [line.split() for line in shown.splitlines()] == [["NAME", "MEMBERS"], ["crew", "2"]]
        (ready,) = api.get("example.com/v1", "Roster", "crew", place)["status"]["conditions"]
        assert (ready["type"], ready["status"], ready["observedGeneration"]) == ("Ready", "True", 1)
        events = eventually(lambda: api.list("events.k8s.io/v1", "Event", place))
        assert {event["reason"] for event in events} == {"PageCreated"}

        # A change while nobody looked.
        running.stop()
        api.patch("example.com/v1", "Roster", "crew", place, {"spec": {"members": ["eve"]}})
        start(program)
        eventually(lambda: data_of(api, place, "crew-roster") == {"members": "eve"}, 30)
        eventually(lambda: api.get("example.com/v1", "Roster", "crew", place)["status"]["members"] == 1)


# The examples ----------------------------------------------------------------------------------------------------


def test_every_example_is_tested_and_short() -> None:
    files = sorted(EXAMPLES.glob("*.py"))
    text = Path(__file__).read_text()
    assert len(files) == 5
    assert [file.name for file in files if f'EXAMPLES / "{file.name}"' not in text] == []
    assert [file.name for file in files if len(file.read_text().splitlines()) > 120] == []


def test_owned_objects_come_back_and_go_with_the_size(api: Api, place: str, start: Start) -> None:
    def ships() -> set[str]:
        found = api.list("v1", "ConfigMap", place, selector="example.com/fleet=north")
        return {ship["metadata"]["name"] for ship in found}

    with kind_of_ours(api, "fleets.example.com"):
        start(EXAMPLES / "owned_objects.py")
        metadata = {"name": "north", "namespace": place}
        create_when_served(
            api, {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": metadata, "spec": {"size": 3}}
        )
        eventually(lambda: ships() == {"north-0", "north-1", "north-2"})
        api.delete("v1", "ConfigMap", "north-1", place)
        eventually(lambda: ships() == {"north-0", "north-1", "north-2"})
        api.patch("example.com/v1", "Fleet", "north", place, {"spec": {"size": 1}})
        eventually(lambda: ships() == {"north-0"})


def test_mapped_watches_follow_both_ends_of_a_reference(api: Api, place: str, start: Start) -> None:
    refers = {"annotations": {"example.com/template": "hello"}}
    for name in ("world", "moon"):
        config_map(api, place, name, {"example.com/role": "page"}, data={"who": name}, metadata=refers)
    start(EXAMPLES / "mapped_watches.py")
    config_map(api, place, "hello", {"example.com/role": "template"}, data={"text": "Hello, $who!"})
    eventually(lambda: data_of(api, place, "world").get("rendered") == "Hello, world!", 30)
    eventually(lambda: data_of(api, place, "moon").get("rendered") == "Hello, moon!")
    api.patch("v1", "ConfigMap", "hello", place, {"data": {"text": "Bye, $who."}})
    eventually(lambda: data_of(api, place, "moon").get("rendered") == "Bye, moon.")
    api.patch("v1", "ConfigMap", "world", place, {"data": {"who": "sun"}})
    eventually(lambda: data_of(api, place, "world").get("rendered") == "Bye, sun.")
    api.delete("v1", "ConfigMap", "hello", place)
    eventually(lambda: data_of(api, place, "world") == {"who": "sun"})


def test_dynamic_kinds_are_counted_while_they_come_and_go(api: Api, place: str, start: Start) -> None:
    group = f"{place}.example.com"
    with kind_of_ours(api, f"apples.{group}"), kind_of_ours(api, f"pears.{group}"):
        api.create(definition(group, "Apple"))
        start(EXAMPLES / "dynamic_kinds.py", "--group", group)
        eventually(lambda: data_of(api, place, "inventory") == {"Apple": "0"}, 30)
        api.create(definition(group, "Pear"))
        pear = {"apiVersion": f"{group}/v1", "kind": "Pear", "metadata": {"name": "one", "namespace": place}}
        create_when_served(api, pear)
        eventually(lambda: data_of(api, place, "inventory") == {"Apple": "0", "Pear": "1"}, 30)
        api.delete(*CRD, f"pears.{group}")
        eventually(lambda: data_of(api, place, "inventory") == {"Apple": "0"}, 30)


def test_periodic_work_is_done_when_it_is_due_and_not_before(api: Api, place: str, start: Start) -> None:
    label = "example.com/ttl-seconds"
    for name, seconds in (("old", "0"), ("young", "3600"), ("odd", "soon")):
        config_map(api, place, name, {label: seconds})
    program = start(EXAMPLES / "periodic_work.py", "--report-every", "0.2")
    eventually(lambda: api.find("v1", "ConfigMap", "old", place) is None, 30)
    config_map(api, place, "brief", {label: "2"})
    born = api.get("v1", "ConfigMap", "brief", place)["metadata"]["creationTimestamp"]

    def expired() -> dict[str, str]:
        events = api.list("events.k8s.io/v1", "Event", place)
        return {event["regarding"]["name"]: event["eventTime"] for event in events}

    eventually(lambda: expired().keys() == {"old", "brief"})
    assert datetime.fromisoformat(expired()["brief"]) - datetime.fromisoformat(born) >= timedelta(seconds=2)
    assert api.find("v1", "ConfigMap", "young", place)
    assert api.find("v1", "ConfigMap", "odd", place)
    eventually(lambda: "objects=2" in [line for line in program.lines if "waiting to expire" in line][-1])
    # What only a person can mend is told once, and not repeated.
    assert len([line for line in program.lines if "it must be a number of seconds" in line]) == 1


def test_leader_only_work_is_taken_over_without_counting_twice(api: Api, place: str, start: Start) -> None:
    file = EXAMPLES / "leader_only.py"
    processes = {name: start(file, "--identity", name, "--every", "0.1") for name in ("one", "two")}
    first = eventually(lambda: data_of(api, place, "tally")["by"], 30)
    other = "two" if first == "one" else "one"
    eventually(lambda: any("standing by" in line for line in processes[other].lines), 30)
    assert not any("leading" in line.split() for line in processes[other].lines)
    before = int(data_of(api, place, "tally")["count"])
    processes[first].stop()
    eventually(lambda: data_of(api, place, "tally")["by"] == other)
    assert int(data_of(api, place, "tally")["count"]) > before
    holder = api.get("coordination.k8s.io/v1", "Lease", "leader-only-example", place)["spec"]["holderIdentity"]
    assert holder == other
