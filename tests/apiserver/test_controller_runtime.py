"""A program on controller-runtime, on both servers.

The program judges nothing: it tells what it saw, and the same account must come from each server.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from controlplane import CONTROLLER_RUNTIME, build_go_program
from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from support.targets import DEFINITIONS, NAMESPACES, EmbeddedServer, Target, embedded_target

# The program is built with the real server. The first test waits for that server, and for the program.
pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

Json = dict[str, Any]

GROUP = "controllerruntime.example.com"
PROTOBUF = "application/vnd.kubernetes.protobuf"
LEASE = "gadget-controller"
# Work that the end cuts short, the lease that is given back then, and a cache that is behind what was just written.
EXPECTED_ERRORS = (
    "context canceled",
    "leader election lost",
    "already exists",
    "please apply your changes to the latest version and try again",
)
ACCOUNT: Json = json.loads((CONTROLLER_RUNTIME / "account.json").read_text())
"""The results that the program must see on both servers."""


@pytest.fixture(scope="module")
def namespace(target: Target) -> Iterator[str]:
    name = target.namespace()
    yield name
    target.delete(f"{DEFINITIONS}/gadgets.{GROUP}")
    target.leave(name)


@pytest.fixture(scope="module")
def account(target: Target, namespace: str) -> Json:
    """The program's output; it leaves the kind Gadget behind."""
    done = subprocess.run(
        _command("exercise", target, namespace), capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def _command(name: str, target: Target, namespace: str) -> list[str]:
    where = ["--kubeconfig", str(target.config), "--namespace", namespace, "--group", GROUP]
    return [str(build_go_program()), name, *where]


@pytest.mark.parametrize("part", ACCOUNT)
def test_what_a_client_sees(account: Json, part: str) -> None:
    assert account[part] == ACCOUNT[part]


def test_every_part_is_judged(account: Json) -> None:
    assert set(account) == {*ACCOUNT, "wire"}


def test_built_in_kinds_go_as_protobuf(target: Target, account: Json) -> None:
    """The embedded server reads it and answers with JSON, which such clients take as well."""
    typed = [each for each in account["wire"] if "/configmaps" in each["path"] and each["accept"].startswith(PROTOBUF)]
    sent = {each["sent"] for each in typed if each["method"] in {"POST", "PUT", "DELETE"}}
    answered = {each["content"] for each in typed if each["status"] < 400}
    assert sent == {PROTOBUF}
    assert answered == ({"application/json"} if target.embedded else {PROTOBUF, f"{PROTOBUF};stream=watch"})


def test_discovery_is_aggregated_for_who_asks(account: Json) -> None:
    asked = [each for each in account["wire"] if each["path"] in {"/api", "/apis"}]
    assert {("as=APIGroupDiscoveryList" in each["accept"], "v=v2" in each["content"]) for each in asked} == {
        (True, True),
        (False, False),
    }


# -- managers ----------------------------------------------------------------------------------------------------------


class Manager:
    """The program as a controller, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], lines: Path, log: Path) -> None:
        self.process = process
        self._lines = lines
        self._log = log

    def told(self, event: str, **more: Any) -> list[Json]:
        """The recorded events with a reason."""
        complete = self._lines.read_text().rpartition("\n")[0]
        told = [json.loads(line) for line in complete.splitlines()]
        return [line for line in told if more.items() <= line.items() and line["event"] == event]

    def await_told(self, event: str, seconds: float = 60.0, **more: Any) -> Json:
        """Wait for a recorded event."""
        end = time.monotonic() + seconds
        while not self.told(event, **more):
            assert self.process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < end, f"no {event} within {seconds} s: {self._log.read_text()[-3000:]}"
            time.sleep(0.02)
        return self.told(event, **more)[0]

    def _errors(self) -> list[str]:
        """Logged errors, without the conflicts that are normal for controllers that read from a cache."""
        logged = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        errors = [f"{line['msg']}: {line.get('error')}" for line in logged if line["level"] == "error"]
        return [error for error in errors if not error.endswith(EXPECTED_ERRORS)]

    def leave(self) -> list[Json]:
        """Stop it; returns its requests."""
        self.process.terminate()
        assert self.process.wait(60) == 0, self._log.read_text()[-3000:]
        (ended,) = self.told("ended")
        assert ended["failure"] == "ok"
        assert not self._errors(), self._errors()
        wire: list[Json] = ended["wire"]
        return wire


@contextmanager
def managing(target: Target, namespace: str, folder: Path, **environment: str) -> Iterator[Manager]:
    """A manager that runs until it leaves, or the block ends."""
    folder.mkdir()
    lines, log = folder / "lines.json", folder / "log.json"
    with (
        lines.open("w") as out,
        log.open("w") as errors,
        subprocess.Popen(
            _command("manage", target, namespace), stdout=out, stderr=errors, text=True, env=environment
        ) as process,
    ):
        try:
            yield Manager(process, lines, log)
        finally:
            process.kill()


def watches(wire: list[Json], resource: str) -> list[Mapping[str, list[str]]]:
    return [each["query"] for each in wire if each["path"].endswith(f"/{resource}") and "watch" in each["query"]]


def lists(wire: list[Json], resource: str) -> list[Mapping[str, list[str]]]:
    """Lists of who watches afterwards."""
    return [
        each["query"] for each in wire
        if each["method"] == "GET" and each["path"].endswith(f"/{resource}") and "watch" not in each["query"]
    ]  # fmt: skip


def test_one_of_two_managers_leads_and_the_other_takes_over(
    target: Target, account: Json, namespace: str, tmp_path: Path
) -> None:
    """The first streams its lists; the second is told to list and then watch, as all clients did before."""
    assert account
    ns = target.namespace()
    gadgets = f"/apis/{GROUP}/v1/namespaces/{ns}/gadgets"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/{LEASE}"

    def make(name: str, size: int) -> None:
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": size}}
        target.create(gadgets, body).ok()

    def status(name: str) -> Any:
        return target.get(f"{gadgets}/{name}").ok().get("status")

    with managing(target, ns, tmp_path / "first") as first:
        first.await_told("leading")
        held = target.get(lease).ok()["spec"]
        with managing(target, ns, tmp_path / "second", KUBE_FEATURE_WatchListClient="false") as second:
            second.await_told("synced")
            make("one", 4)
            target.eventually(lambda: status("one") == {"phase": "Ready", "seen": 1, "size": 1}, 60)
            child = target.get(f"{NAMESPACES}/{ns}/configmaps/one").ok()
            assert child["data"] == {"size": "4"}
            assert (
                child["metadata"]["ownerReferences"][0]["uid"] == target.get(f"{gadgets}/one").ok()["metadata"]["uid"]
            )
            # Owned objects are brought back, and objects elsewhere that name a Gadget have it looked at.
            target.delete(f"{NAMESPACES}/{ns}/configmaps/one")
            target.eventually(lambda: target.get(f"{NAMESPACES}/{ns}/configmaps/one").status == 200, 60)
            _series(target, ns)
            before = len(first.told("reconciled", name="one"))
            secret = {"metadata": {"name": "s", "annotations": {"example.com/secret": "one"}}}
            target.create(f"{NAMESPACES}/{ns}/secrets", secret).ok()
            target.eventually(lambda: len(first.told("reconciled", name="one")) > before, 60)
            assert not second.told("leading")

            streamed = first.leave()
            second.await_told("leading")
            taken = target.get(lease).ok()["spec"]
            assert taken["holderIdentity"] != held["holderIdentity"]
            assert taken["leaseTransitions"] > held["leaseTransitions"]
            target.patch(f"{gadgets}/one", {"spec": {"size": 5}}).ok()
            target.eventually(lambda: status("one") == {"phase": "Ready", "seen": 2, "size": 1}, 60)
            target.delete(f"{gadgets}/one")
            target.eventually(lambda: target.get(f"{gadgets}/one").status == 404, 60)
            assert target.get(f"{NAMESPACES}/{ns}/configmaps/one").status == 404
            listed = second.leave()

    for resource in ("gadgets", "configmaps", "secrets"):
        opened = watches(streamed, resource)
        assert opened[0]["sendInitialEvents"] == ["true"]
        assert not lists(streamed, resource)
        assert all("sendInitialEvents" not in each for each in watches(listed, resource))
        assert lists(listed, resource)[0]["limit"] == ["500"]
    target.leave(ns)


def _series(target: Target, ns: str) -> None:
    """Repeated events are counted, in both Event APIs."""

    def events() -> list[Json]:
        found: list[Json] = target.get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events").ok()["items"]
        return [event for event in found if event["reason"] == "Sized"]

    def summed() -> bool:
        newer = [event for event in events() if event["reportingController"] == "gadgets"]
        older = [event for event in events() if event["reportingController"] != "gadgets"]
        return any("series" in event for event in newer) and any(e.get("deprecatedCount", 0) > 1 for e in older)

    target.eventually(summed, 60)
    for event in events():
        assert (event["type"], event["note"], event["regarding"]["kind"]) == ("Normal", "size is 4", "Gadget")


# -- what only some servers do -----------------------------------------------------------------------------------------


async def without_streams(request: ApiRequest, go_on: Handler) -> ApiResponse:
    """Answer as a server without the WatchList feature."""
    if request.parameter("sendInitialEvents"):
        words = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        causes = [{"reason": "FieldValueForbidden", "message": f"Forbidden: {words}", "field": "sendInitialEvents"}]
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"ListOptions.meta.k8s.io is invalid: sendInitialEvents: Forbidden: {words}",
            "reason": "Invalid",
            "details": {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes},
            "code": 422,
        }
        return ApiResponse(422, [("Content-Type", "application/json")], json.dumps(status).encode())
    return await go_on(request)


def test_clients_list_where_lists_are_not_streamed(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path, middleware=without_streams) as server:
        target = embedded_target(server, "")
        subprocess.run(_command("exercise", target, "default"), capture_output=True, timeout=150, check=True)
        ns = target.namespace()
        gadgets = f"/apis/{GROUP}/v1/namespaces/{ns}/gadgets"
        target.create(gadgets, {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "a"}}).ok()
        with managing(target, ns, tmp_path / "manager") as manager:
            target.eventually(lambda: target.get(f"{gadgets}/a").ok().get("status", {}).get("seen") == 1, 60)
            wire = manager.leave()
        target.close()
    assert any("sendInitialEvents" in each for each in watches(wire, "gadgets"))
    assert lists(wire, "gadgets")
