"""Kubeconfigs read by kubectl and by the client: a server sees the same of both, or nothing of either."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from controlplane import kubernetes_version
from controlplane.build import build
from fivespot.runtime import FivespotError, connect
from support.faulty_servers import Exchange, WireServer, serving

pytestmark = pytest.mark.server

EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
CERTIFICATE = {"client-certificate": "jane.crt", "client-key": "jane.key"}
VERSION = b'{"major":"1","minor":"37","gitVersion":"v1.37.2"}'


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return build(kubernetes_version()).kubectl


@dataclass
class Files:
    """A folder with certificates, tokens and a plugin, and the servers that kubeconfigs in it lead to."""

    folder: Path
    tls: WireServer
    plain: WireServer
    ca: trustme.CA
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: str, mode: int = 0o600) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(mode)
        return path

    def plugin(self, status: dict[str, Any], version: str = EXEC["apiVersion"]) -> None:
        answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
        self.write("answer", answer)
        script = f'#!/bin/sh\nprintf %s "$KUBERNETES_EXEC_INFO" > {self.folder}/told\ncat {self.folder}/answer\n'
        self.write("plugin", script, 0o700)

    def data(self, name: str) -> str:
        return base64.b64encode((self.folder / name).read_bytes()).decode()

    def config(self, user: dict[str, Any], name: str = "config", **cluster: Any) -> Path:
        section: dict[str, Any] = {"server": self.tls.url, "certificate-authority": "ca.crt", **cluster}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {name: value for name, value in section.items() if value}}],
            "users": [{"name": "u", "user": user}],
        }
        return self.write(name, yaml.safe_dump(content))


Case = Callable[[Files], Path]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """A kubeconfig to try; the function's name says what it is about."""
    CASES[function.__name__] = function
    return function


def with_user(name: str, **user: Any) -> None:
    fields = {key.replace("_", "-"): value for key, value in user.items()}
    CASES[name] = lambda files: files.config(fields)


def over_http(name: str, **user: Any) -> None:
    fields = {key.replace("_", "-"): value for key, value in user.items()}
    CASES[name] = lambda files: files.config(fields, server=files.plain.url, **{"certificate-authority": ""})


with_user("a token", token="abc")
with_user("a token file", tokenFile="tokens/new")
with_user("a token and a token file", token="abc", tokenFile="tokens/new")
with_user("a token and a token file that is missing", token="abc", tokenFile="tokens/absent")
with_user("a token and a token file that is empty", token="abc", tokenFile="tokens/empty")
with_user("a token file that is missing", tokenFile="tokens/absent")
with_user("a token file that is empty", tokenFile="tokens/empty")
with_user("a token that is a number", token=12345)
with_user("a name and a password", username="me", password="pw")
with_user("a name without a password", username="me")
with_user("a token and a name", token="abc", username="me", password="pw")
with_user("a token file and a name", tokenFile="tokens/new", username="me", password="pw")
with_user("a client certificate", client_certificate="jane.crt", client_key="jane.key")
with_user("a client certificate without a key", client_certificate="jane.crt")
with_user("a client certificate that is missing", client_certificate="absent.crt", client_key="jane.key")
with_user("a client certificate and a token", client_certificate="jane.crt", client_key="jane.key", token="abc")
with_user("a plugin", exec=EXEC)
with_user(
    "a plugin of the beta version", exec={"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "./beta"}
)
with_user("a plugin of a version that is gone", exec={**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"})
with_user("a plugin that does not say whether it asks people", exec={**EXEC, "interactiveMode": ""})
with_user("a plugin that has to ask people", exec={**EXEC, "interactiveMode": "Always"})
with_user("a plugin that is missing", exec={**EXEC, "command": "./absent"})
with_user("a plugin and a token", exec=EXEC, token="abc")
with_user("a plugin and a name", exec=EXEC, username="me", password="pw")
with_user("a plugin that is told about the cluster", exec={**EXEC, "provideClusterInfo": True})
with_user("a plugin and an auth provider", exec=EXEC, auth_provider={"name": "oidc", "config": {}})
with_user("an auth provider that is gone", auth_provider={"name": "gcp", "config": {}})
with_user("impersonation", token="abc", **{"as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"k/x": ["1", "2"]}})
with_user("impersonation of groups alone", token="abc", **{"as-groups": ["a"]})
over_http("a token without TLS", token="abc", **{"as": "jane"})
over_http("a plugin without TLS", exec=EXEC)
over_http("a name without TLS", username="me", password="pw")


@case
def a_token_of_oidc(files: Files) -> Path:
    ends = datetime.now(UTC) + timedelta(hours=1)
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(ends.timestamp())}).encode()).decode().rstrip("=")
    settings = {"id-token": f"e30.{claims}.c2ln", "client-id": "me", "idp-issuer-url": "https://issuer.example"}
    return files.config({"auth-provider": {"name": "oidc", "config": settings}})


@case
def inline_certificates(files: Files) -> Path:
    user = {"client-certificate-data": files.data("jane.crt"), "client-key-data": files.data("jane.key")}
    return files.config(user, **{"certificate-authority": "", "certificate-authority-data": files.data("ca.crt")})


@case
def a_certificate_twice(files: Files) -> Path:
    user = {
        "client-certificate": "jane.crt",
        "client-certificate-data": files.data("jane.crt"),
        "client-key": "jane.key",
    }
    return files.config(user)


@case
def an_authority_twice(files: Files) -> Path:
    return files.config({"token": "abc"}, **{"certificate-authority-data": files.data("ca.crt")})


@case
def an_authority_that_is_missing(files: Files) -> Path:
    return files.config({"token": "abc"}, **{"certificate-authority": "absent.crt"})


@case
def an_unknown_authority(files: Files) -> Path:
    return files.config({"token": "abc"}, **{"certificate-authority": ""})


@case
def no_verification(files: Files) -> Path:
    cluster: dict[str, Any] = {"certificate-authority": "", "insecure-skip-tls-verify": True}
    return files.config({"token": "abc"}, **cluster)


@case
def no_verification_and_an_authority(files: Files) -> Path:
    cluster: dict[str, Any] = {"insecure-skip-tls-verify": True}
    return files.config({"token": "abc"}, **cluster)


@case
def a_wrong_server_name(files: Files) -> Path:
    return files.config({"token": "abc"}, **{"tls-server-name": "elsewhere"})


@case
def a_plugin_that_gives_a_certificate(files: Files) -> Path:
    certificate, key = ((files.folder / name).read_text() for name in ("jane.crt", "jane.key"))
    files.plugin({"clientCertificateData": certificate, "clientKeyData": key})
    return files.config({"exec": EXEC})


@case
def a_plugin_that_gives_half_a_certificate(files: Files) -> Path:
    files.plugin({"token": "abc", "clientKeyData": (files.folder / "jane.key").read_text()})
    return files.config({"exec": EXEC})


@case
def a_plugin_that_gives_nothing(files: Files) -> Path:
    files.plugin({})
    return files.config({"exec": EXEC})


@case
def a_plugin_that_answers_in_another_version(files: Files) -> Path:
    files.plugin({"token": "abc"}, "client.authentication.k8s.io/v1beta1")
    return files.config({"exec": EXEC})


@case
def a_plugin_that_is_told_what_an_extension_says(files: Files) -> Path:
    extensions = [
        {"name": "other", "extension": {"x": 1}},
        {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me", "deep": [1]}},
    ]
    cluster: dict[str, Any] = {"extensions": extensions, "tls-server-name": "127.0.0.1", "disable-compression": True}
    return files.config({"exec": {**EXEC, "provideClusterInfo": True}}, **cluster)


@case
def a_plugin_that_is_told_that_nothing_is_verified(files: Files) -> Path:
    cluster: dict[str, Any] = {"certificate-authority": "", "insecure-skip-tls-verify": True}
    return files.config({"exec": {**EXEC, "provideClusterInfo": True}}, **cluster)


@case
def a_prefix_with_a_query(files: Files) -> Path:
    return files.config({"token": "abc"}, server=f"{files.tls.url}/clusters/one/?a=b#c")


@case
def a_server_without_a_scheme(files: Files) -> Path:
    return files.config({"token": "abc"}, server=f"127.0.0.1:{files.plain.port}", **{"certificate-authority": ""})


@case
def a_user_name_in_the_url(files: Files) -> Path:
    return files.config(CERTIFICATE, server=files.tls.url.replace("https://", "https://me:p%40w@"))


@case
def a_link_to_the_file(files: Files) -> Path:
    target = files.config(
        {"tokenFile": "token"}, "there/config", **{"certificate-authority": str(files.folder / "ca.crt")}
    )
    files.write("there/token", "there")
    files.write("here/token", "here")
    link = files.folder / "here" / "config"
    link.symlink_to(target)
    return link


@case
def several_files(files: Files) -> Path:
    files.config({"token": "second"}, "second")
    first = files.write("first", yaml.safe_dump({"users": [{"name": "u", "user": {"tokenFile": "tokens/new"}}]}))
    files.environment["KUBECONFIG"] = os.pathsep.join(
        [str(files.folder / "absent"), str(first), str(files.folder / "second")]
    )
    return first


@case
def several_files_that_have_the_user_in_parts(files: Files) -> Path:
    files.config({"token": "second"}, "second")
    first = files.write("first", yaml.safe_dump({"users": [{"name": "u", "user": CERTIFICATE}]}))
    files.environment["KUBECONFIG"] = os.pathsep.join([str(first), str(files.folder / "second")])
    return first


@case
def a_user_that_is_missing(files: Files) -> Path:
    path = files.config({"token": "abc"})
    return files.write("config", path.read_text().replace("user: u", "user: v"))


@case
def a_user_twice(files: Files) -> Path:
    content = yaml.safe_load(files.config({"token": "abc"}).read_text())
    content["users"] *= 2
    return files.write("config", yaml.safe_dump(content))


async def answer(exchange: Exchange) -> None:
    await exchange.answer(200, VERSION)


def shown(wires: tuple[WireServer, ...]) -> Any:
    """Return and forget the last request that the servers received; None if there was none."""
    seen = [exchange for wire in wires for exchange in wire.seen]
    for wire in wires:
        wire.seen.clear()
    if not seen:
        return None
    last = seen[-1]
    return {
        "target": last.target.partition("?")[0],
        "authorization": last.headers.get("authorization"),
        "impersonation": sorted(
            (name.lower(), value) for name, value in last.fields if name.startswith("Impersonate-")
        ),
        "certificate": last.peer_certificate.get("commonName"),
    }


def told(folder: Path) -> Any:
    """Return and forget the input of the plugin; None if it did not run."""
    path = folder / "told"
    if not path.exists():
        return None
    spec = json.loads(path.read_text())["spec"]
    path.unlink()
    return spec


@pytest.mark.parametrize("name", CASES)
async def test_a_server_sees_of_us_what_it_sees_of_kubectl(
    name: str, tmp_path: Path, kubectl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    async with serving(answer, context) as tls, serving(answer) as plain:
        files = prepared(Files(tmp_path, tls, plain, ca))
        path = CASES[name](files)
        files.environment.setdefault("KUBECONFIG", str(path))
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **files.environment}
        process = await asyncio.create_subprocess_exec(
            kubectl,
            "version",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        expected = shown((tls, plain)), told(tmp_path)
        monkeypatch.setenv("KUBECONFIG", environment["KUBECONFIG"])
        problem: FivespotError | None = None
        try:
            async with await connect() as connection:
                await connection.client.raw("GET", "/version")
        except FivespotError as error:
            problem = error
        assert (shown((tls, plain)), told(tmp_path)) == expected, (output.decode(), str(problem))
        # Both say so where there is no request.
        assert (process.returncode == 0) == (problem is None)


def prepared(files: Files) -> Files:
    files.ca.cert_pem.write_to_path(files.folder / "ca.crt")
    issued = files.ca.issue_cert(common_name="jane")
    files.write("jane.crt", b"".join(blob.bytes() for blob in issued.cert_chain_pems).decode())
    files.write("jane.key", issued.private_key_pem.bytes().decode())
    files.write("tokens/new", "new\n")
    files.write("tokens/empty", "\n")
    files.plugin({"token": "from-the-plugin"})
    beta = (files.folder / "plugin").read_text().replace("/answer", "/beta-answer")
    files.write("beta", beta, 0o700)
    files.write("beta-answer", (files.folder / "answer").read_text().replace("k8s.io/v1", "k8s.io/v1beta1"))
    return files
