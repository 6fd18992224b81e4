"""The parts of the control plane's tools that need no server."""

from __future__ import annotations

import http.server
import io
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from controlplane import Api, ApiError, AuditLog, free_ports, kubernetes_version, select, stand_in_crds, tally
from controlplane.build import Binaries, build, kubernetes_go_mod, linker_flags, locked
from controlplane.credentials import MARK, Credentials, write_kubeconfig
from controlplane.versions import DEFAULT_KUBERNETES, cache_root
from support import eventually, unique_name

# -- releases and the build --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "expected"), [("1.34.4", "1.34.4"), ("v1.34.4", "1.34.4"), ("", DEFAULT_KUBERNETES)])
def test_the_release_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, given: str, expected: str) -> None:
    monkeypatch.setenv("FIVESPOT_KUBERNETES_VERSION", given)
    assert kubernetes_version() == expected


@pytest.mark.parametrize("given", ["newest", "1.34", "2.0.0", "1.34.4-rc.1", "1.34.4; rm"])
def test_what_is_no_release_is_refused_with_the_variable_s_name(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("FIVESPOT_KUBERNETES_VERSION", given)
    with pytest.raises(ValueError, match="FIVESPOT_KUBERNETES_VERSION"):
        kubernetes_version()


def test_the_cache_ignores_a_relative_folder_as_its_specification_demands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "fivespot" / "controlplane"
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache_root().is_absolute()


def test_staging_modules_are_replaced_by_the_published_ones_of_the_same_release() -> None:
    upstream = {
        "Go": "1.26.0",
        "GoDebug": [{"Key": "default", "Value": "go1.26"}],
        "Replace": [
            {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
            {"Old": {"Path": "example.com/a"}, "New": {"Path": "example.com/b", "Version": "v1.2.3"}},
        ],
    }
    lines = kubernetes_go_mod("1.37.2", upstream).splitlines()
    assert "go 1.26.0" in lines
    assert "godebug default=go1.26" in lines
    assert "require k8s.io/kubernetes v1.37.2" in lines
    assert "replace k8s.io/api => k8s.io/api v0.37.2" in lines
    assert "replace example.com/a => example.com/b v1.2.3" in lines


def test_the_binary_is_told_its_version() -> None:
    flags = linker_flags("1.37.2")
    for fact in ("gitVersion=v1.37.2", "gitMajor=1", "gitMinor=37", "gitTreeState=clean"):
        assert f"-X k8s.io/component-base/version.{fact}" in flags


def test_what_is_there_is_not_built_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # With no compiler to be found, an attempt to build would fail.
    monkeypatch.setenv("PATH", "")
    expected = Binaries.of("1.37.2")
    assert not expected.present()
    expected.etcd.parent.mkdir(parents=True)
    for path in (expected.kube_apiserver, expected.kube_controller_manager, expected.kubectl, expected.etcd):
        path.touch()
    said: list[str] = []
    assert build("1.37.2", said.append) == expected
    assert said == []


def test_who_waits_for_another_build_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    got = threading.Event()

    def second() -> None:
        with locked(tmp_path / "lock", said.append):
            got.set()

    with locked(tmp_path / "lock", said.append):
        waiting = threading.Thread(target=second)
        waiting.start()
        eventually(lambda: said)
        assert "waiting for another build" in said[0]
        assert not got.is_set()
    waiting.join(timeout=10)
    assert got.is_set()


# -- what it is given --------------------------------------------------------------------------------------------------


def test_the_stand_ins_carry_the_contract_label_except_the_one_that_must_not() -> None:
    labels = {
        crd["spec"]["names"]["kind"]: crd["metadata"].get("labels", {}).get("cluster.x-k8s.io/v1beta2")
        for crd in stand_in_crds()
    }
    assert labels.pop("UnlabelledMachine") is None
    assert set(labels) == {"StandInBootstrap", "OtherBootstrap", "StandInMachine", "OtherMachine", "StandInCluster"}
    assert set(labels.values()) == {"v1beta1"}
    for crd in stand_in_crds():
        names = crd["spec"]["names"]
        assert names["plural"] == names["kind"].lower() + "s"
        assert crd["metadata"]["name"] == f"{names['plural']}.{crd['spec']['group']}"


def test_ports_differ_and_are_not_those_of_outgoing_connections() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < 32000


def test_namespace_names_are_valid_unique_and_tell_the_test() -> None:
    names = {unique_name("test_A thing [with] parameters" * 4) for _ in range(20)}
    assert len(names) == 20
    assert all(len(name) <= 63 and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) for name in names)
    assert all(name.startswith("test-a-thing-with-parameters") for name in names)


# -- the audit log -----------------------------------------------------------------------------------------------------


def audit_event(verb: str, user: str = "jane", **reference: str) -> dict[str, object]:
    return {"stage": "ResponseComplete", "verb": verb, "user": {"username": user}, "objectRef": reference}


def test_the_audit_log_is_read_from_a_mark_and_without_a_half_written_end(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    assert log.events() == []
    assert log.mark() == 0
    log.path.write_text(json.dumps(audit_event("get")) + "\n")
    mark = log.mark()
    with log.path.open("a") as out:
        out.write(json.dumps({**audit_event("watch"), "stage": "ResponseStarted"}) + "\n")
        out.write(json.dumps(audit_event("list")) + "\n" + '{"stage": "Resp')
    assert [event["verb"] for event in log.events()] == ["get", "list"]
    assert [event["verb"] for event in log.events(since=mark)] == ["list"]
    assert [event["verb"] for event in log.events(since=mark, stages=["ResponseStarted"])] == ["watch"]


class Growing(io.BytesIO):
    """A file that is written to while it is read: what followed its end for a moment comes as a line of its own."""

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline()
        half = line.find(b"|")
        if half >= 0:
            self.seek(half + 1 - len(line), io.SEEK_CUR)
            return line[:half]
        return line

    def __next__(self) -> bytes:
        if line := self.readline():
            return line
        raise StopIteration


def test_the_rest_of_a_line_that_was_half_written_is_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.touch()
    content = json.dumps(audit_event("get")) + "\n" + json.dumps(audit_event("list")).replace("jane", "ja|ne") + "\n"
    monkeypatch.setattr(Path, "open", lambda *_: Growing(content.encode()))
    assert [event["verb"] for event in log.events()] == ["get"]


def test_what_a_server_that_died_was_writing_does_not_run_into_what_the_next_one_writes(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.path.write_text(json.dumps(audit_event("get")) + "\n" + '{"stage": "Resp')
    log.server_died()
    with log.path.open("a") as out:
        out.write(json.dumps(audit_event("list")) + "\n")
    assert [event["verb"] for event in log.events()] == ["get", "list"]


def test_the_audit_log_has_all_writes_whose_effects_can_have_been_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of a write follows its effect; the one that says that it has begun goes before."""
    monkeypatch.setattr("controlplane.audit._LATE_SECONDS", 2.0)
    log = AuditLog(tmp_path / "audit.log")

    def note(verb: str, stage: str) -> None:
        with log.path.open("a") as out:
            out.write(json.dumps({**audit_event(verb), "stage": stage, "auditID": verb}) + "\n")

    note("create", "RequestReceived")
    threading.Timer(0.1, note, ("create", "ResponseComplete")).start()
    assert [event["verb"] for event in log.events()] == ["create"]
    note("patch", "RequestReceived")
    threading.Timer(0.1, note, ("patch", "ResponseComplete")).start()
    mark = log.mark()
    assert log.events(since=mark) == []
    # Those that begin meanwhile are not waited for: on a busy server there are always some.
    note("update", "RequestReceived")
    busy = threading.Event()

    def keep_busy() -> None:
        number = 0
        while not busy.wait(0.005):
            note(f"busy-{number + 1}", "RequestReceived")
            note(f"busy-{number}", "ResponseComplete")
            number += 1

    worker = threading.Thread(target=keep_busy)
    worker.start()
    threading.Timer(0.1, note, ("update", "ResponseComplete")).start()
    began = time.monotonic()
    assert "update" in {event["verb"] for event in log.events(since=mark)}
    assert time.monotonic() - began < 1.5
    busy.set()
    worker.join()
    mark = log.mark()
    note("delete", "RequestReceived")
    # One that is held is not waited for without end, and only once.
    began = time.monotonic()
    assert log.events(since=mark) == []
    waited = time.monotonic()
    assert log.events(since=mark) == []
    assert time.monotonic() - waited < 1 < waited - began < 10
    note("deletecollection", "RequestReceived")
    with log.holding():
        began = time.monotonic()
        assert log.events(since=mark) == []
        assert time.monotonic() - began < 1
    log.server_died()
    began = time.monotonic()
    assert log.events(since=mark) == []
    assert time.monotonic() - began < 1


def test_events_are_selected_by_what_is_given_and_counted_by_verb_and_resource() -> None:
    events = [
        audit_event("patch", apiGroup="cluster.x-k8s.io", resource="machines", subresource="status", namespace="a"),
        audit_event("patch", apiGroup="cluster.x-k8s.io", resource="machines", namespace="a"),
        audit_event("create", "joe", resource="events", namespace="b"),
        {**audit_event("create", "admin", resource="events"), "impersonatedUser": {"username": "joe"}},
    ]
    assert len(select(events, resource="machines")) == 2
    assert len(select(events, resource="machines", subresource="")) == 1
    assert len(select(events, user="joe")) == 2
    assert len(select(events, verbs={"patch", "create"}, namespace="a")) == 2
    assert tally(events) == {
        "patch cluster.x-k8s.io/machines/status": 1,
        "patch cluster.x-k8s.io/machines": 1,
        "create events": 2,
    }


# -- the raw client ----------------------------------------------------------------------------------------------------


class Answers(http.server.BaseHTTPRequestHandler):
    """Discovery of one group, one object, and a 404 in plain text as kube-apiserver sends it for unknown paths."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, str | None]]

    def do_GET(self) -> None:
        self.seen.append((self.command, self.path, self.headers.get("Authorization")))
        if self.path == "/apis/example.org/v1":
            self.answer(200, json.dumps({"resources": [{"name": "things", "kind": "Thing", "namespaced": True}]}))
        elif self.path == "/apis/example.org/v1/namespaces/ns/things/a":
            self.answer(200, json.dumps({"metadata": {"name": "a"}}))
        else:
            self.answer(404, "404 page not found\n")

    def answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Api]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    handler = type("Handler", (Answers,), {"seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        url = f"https://127.0.0.1:{server.server_address[1]}"
        with Api(url, ca_file=tmp_path / "ca.crt", token="secret") as api:
            yield api
        server.shutdown()
        serving.join()


def test_the_client_finds_paths_by_discovery_and_says_who_asks(client: Api) -> None:
    assert client.get("example.org/v1", "Thing", "a", "ns") == {"metadata": {"name": "a"}}


def test_a_missing_object_is_none_and_a_missing_kind_too(client: Api) -> None:
    assert client.find("example.org/v1", "Thing", "b", "ns") is None
    assert client.find("example.org/v1", "Nothing", "b", "ns") is None
    assert client.find("example.org/v9", "Thing", "b", "ns") is None


def test_an_error_in_plain_text_is_told_as_it_is(client: Api) -> None:
    with pytest.raises(ApiError, match="GET /nowhere: 404  404 page not found") as told:
        client.request("GET", "/nowhere")
    assert told.value.status == 404


def test_a_kubeconfig_is_for_its_owner_only_and_is_recognised_as_throw_away(tmp_path: Path) -> None:
    pki = Credentials(tmp_path / "pki")
    path = write_kubeconfig(
        tmp_path / "config", url="https://127.0.0.1:1", ca_file=pki.ca_file, user={"token": "t"}, namespace="ns"
    )
    assert path.stat().st_mode & 0o077 == 0
    assert path.read_text().startswith(MARK)
    assert pki.token_file.stat().st_mode & 0o077 == 0
