"""Makes requests of the manager arrive late: an admission webhook that holds them until the test lets them go.

The server has authenticated and decoded a held request but has not compared it with what is stored, which is the moment
in which the world can change under a write that was right when it was sent.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from controlplane import ControlPlane
from harness import MANAGER_USER
from harness.wait import eventually

from .cluster import unique_name

Json = dict[str, Any]

_CONFIGURATION = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
_HOLD_SECONDS = 25
_PROBES = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}


class Gate:
    """Sees, and holds unless it is open, what the manager asks of some resources of one namespace.

    A context manager; at its end everything passes. It is in force when the ``with`` block begins.

    :param resources: ``(group, plural)``, with ``/subresource`` where that is meant.
    :param operations: ``CREATE``, ``UPDATE`` (patches too), ``DELETE``.
    :param is_open: only look on, hold nothing.
    """

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        resources: Sequence[tuple[str, str]],
        operations: Sequence[str],
        *,
        is_open: bool = False,
    ) -> None:
        self._plane = plane
        self._namespace = namespace
        self._resources = resources
        self._operations = list(operations)
        self._name = unique_name("gate")
        self._open = threading.Event()
        if is_open:
            self._open.set()
        self._probed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="gate", daemon=True)
        self.seen: list[Json] = []
        """The requests so far, as the server puts them before admission: ``operation``, ``object`` and so on."""

    def __enter__(self) -> Self:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._plane.credentials.cert_file, self._plane.credentials.key_file)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread.start()
        try:
            self._plane.api.create(self._configuration())
            eventually(self._probe, 30, what="the gate is in force", poll=0.1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        try:
            self._plane.api.delete(*_CONFIGURATION, self._name, missing_ok=True)
            # As long as the server still asks, a request fails when nobody answers.
            eventually(self._is_gone, 30, what="the gate is gone", poll=0.1)
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def held(self, count: int = 1, timeout: float = 15) -> Json:
        """Wait until so many requests have come; the last of them."""
        eventually(lambda: len(self.seen) >= count, timeout, what=f"{count} requests at the gate")
        return self.seen[count - 1]

    def release(self) -> None:
        """Let those that wait, and all that come, go on."""
        self._open.set()

    def answer(self, request: Json) -> None:
        """Note one request, and return when it may go on."""
        if request["resource"]["resource"] == "configmaps":
            self._probed.set()
            return
        with self._plane.audit_log.holding():
            self.seen.append(request)
            self._open.wait(_HOLD_SECONDS)

    def _probe(self) -> bool:
        metadata = {"name": "gate", "namespace": self._namespace}
        self._plane.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, dry_run=True)
        return self._probed.is_set()

    def _is_gone(self) -> bool:
        self._probed.clear()
        return not self._probe()

    def _configuration(self) -> Json:
        port = self._server.server_address[1]
        authority = base64.b64encode(self._plane.ca_file.read_bytes()).decode()
        rules = [
            {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": self._operations}
            for group, resource in self._resources
        ]
        about = f"request.userInfo.username == '{MANAGER_USER}' || request.resource.resource == 'configmaps'"
        webhook = {
            "name": "gate.example.com",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": authority},
            "failurePolicy": "Fail",
            # Otherwise the server would show a request in another version than the one it was made in.
            "matchPolicy": "Exact",
            "matchConditions": [{"name": "who", "expression": about}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
            "rules": [*rules, _PROBES],
            "sideEffects": "None",
            "timeoutSeconds": 30,
        }
        metadata = {"name": self._name}
        return {
            "apiVersion": _CONFIGURATION[0],
            "kind": _CONFIGURATION[1],
            "metadata": metadata,
            "webhooks": [webhook],
        }


def _handler(gate: Gate) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = review["request"]
            gate.answer(request)
            response = {"uid": request["uid"], "allowed": True}
            body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Nothing: the audit log has it."""

    return Handler
