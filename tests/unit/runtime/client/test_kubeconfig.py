"""Every form of credentials, asserted on the wire; every broken file, told in one line."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from structlog.testing import capture_logs

from fivespot.runtime.client import Connection, connect
from fivespot.runtime.client.connection import select_source
from fivespot.runtime.client.kubeconfig import load_kubeconfig
from fivespot.runtime.clock import SystemClock, ThreadOffload
from fivespot.runtime.errors import ConfigError, TransportError, UnauthorizedError
from support.faulty_servers import Exchange, FixedRandom, WireServer, serving

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ENVIRONMENT = (
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@dataclass
class Pki:
    """A CA with the files that kubeconfigs name, in one folder."""

    folder: Path
    ca: trustme.CA = field(default_factory=trustme.CA)

    def __post_init__(self) -> None:
        self.ca.cert_pem.write_to_path(self.folder / "ca.crt")

    @property
    def ca_data(self) -> str:
        return base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()

    def server(self, *names: str, client: ssl.VerifyMode = ssl.CERT_OPTIONAL) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
        self.ca.configure_trust(context)
        context.verify_mode = client
        return context

    def client(self, name: str, not_after: datetime | None = None) -> tuple[str, str]:
        """PEM texts of a certificate and its key."""
        issued = self.ca.issue_cert(common_name=name, not_after=not_after)
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems).decode()
        return chain, issued.private_key_pem.bytes().decode()


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


async def accept(exchange: Exchange) -> None:
    await exchange.answer(200, b'{"gitVersion":"v1"}')


def config(server: str, user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
    }


CA: dict[str, Any] = {"certificate-authority": "ca.crt"}
"""The cluster's part for a server of the fixture ``pki``, for a file beside it."""


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


async def connected(path: Path | None = None, context: str | None = None) -> Connection:
    return await connect(
        kubeconfig=str(path) if path else None,
        context=context,
        user_agent="tests/1.0",
        clock=SystemClock(),
        rng=FixedRandom(),
        offload=ThreadOffload(),
    )


@asynccontextmanager
async def asked(wire: WireServer, path: Path | None = None) -> AsyncIterator[Exchange]:
    """A request as the server sees it."""
    connection = await connected(path)
    async with connection:
        assert "v1" in await connection.check()
        yield wire.seen[-1]


def jwt(ends: datetime) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': int(ends.timestamp())})}.c2ln"


def plugin(folder: Path, status: dict[str, Any], *, code: int = 0) -> dict[str, Any]:
    """The exec section of a plugin that counts its runs in a file."""
    body = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    write(folder / "answer.json", json.dumps(body))
    write(
        folder / "plugin.py",
        "import os, pathlib, sys\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "runs.write_text((runs.read_text() if runs.exists() else '') + os.environ['WHO'] + '\\n')\n"
        f"print(pathlib.Path({str(folder / 'answer.json')!r}).read_text())\n"
        f"print('a reason\\nof two lines', file=sys.stderr)\nsys.exit({code})\n",
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(folder / "plugin.py")],
            "env": [{"name": "WHO", "value": "me"}],
            "interactiveMode": "Never",
        }
    }


# -- forms on the wire -----------------------------------------------------------------------------------------------


async def test_a_token(tmp_path: Path, pki: Pki) -> None:
    async with (
        serving(accept, pki.server()) as wire,
        asked(wire, write(tmp_path / "k", config(wire.url, {"token": "abc"}, **CA))) as seen,
    ):
        assert seen.headers["authorization"] == "Bearer abc"


async def test_a_token_file_that_ends_in_a_newline_and_is_relative(tmp_path: Path, pki: Pki) -> None:
    write(tmp_path / "secret" / "token", "abc\n")
    async with serving(accept, pki.server()) as wire:
        path = write(tmp_path / "k", config(wire.url, {"tokenFile": "secret/token"}, **CA))
        async with asked(wire, path) as seen:
            assert seen.headers["authorization"] == "Bearer abc"


async def test_a_name_and_password(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server()) as wire:
        path = write(tmp_path / "k", config(wire.url, {"username": "me", "password": "pw"}, **CA))
        async with asked(wire, path) as seen:
            assert seen.headers["authorization"] == "Basic " + base64.b64encode(b"me:pw").decode()


async def test_nobody_at_all_is_warned_about(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server()) as wire:
        path = write(tmp_path / "k", config(wire.url, **CA))
        with capture_logs() as logs:
            async with asked(wire, path) as seen:
                assert "authorization" not in seen.headers
    assert any("anonymous" in entry["event"] for entry in logs)


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({"token": "old", "tokenFile": "token"}, "Bearer new"),
        ({"token": "old", "tokenFile": "absent"}, "Bearer old"),
        ({"token": "old", "tokenFile": "empty"}, "Bearer old"),
        ({"token": "old", "exec": {"command": "false"}}, "Bearer old"),
        ({"tokenFile": "token", "auth-provider": {"name": "oidc"}}, "Bearer new"),
        ({"username": "me"}, "Basic bWU6"),
    ],
)
def test_a_token_file_precedes_a_token_and_a_token_precedes_plugins(
    tmp_path: Path, user: dict[str, Any], authorization: str
) -> None:
    """As in client-go, which reads the file again and again and keeps the token for when it cannot."""
    write(tmp_path / "token", "new\n")
    write(tmp_path / "empty", "\n")
    path = write(tmp_path / "k", config("https://x", user))
    assert load_kubeconfig(NOW, paths=[path]).authorization == authorization


def test_relative_paths_start_where_a_link_to_the_file_is_and_not_where_it_leads(tmp_path: Path) -> None:
    write(tmp_path / "here" / "token", "here")
    write(tmp_path / "there" / "token", "there")
    target = write(tmp_path / "there" / "k", config("https://x", {"tokenFile": "token"}))
    link = tmp_path / "here" / "k"
    link.symlink_to(target)
    assert load_kubeconfig(NOW, paths=[link]).authorization == "Bearer here"
    assert load_kubeconfig(NOW, paths=[target]).authorization == "Bearer there"


@pytest.mark.parametrize("method", ["token", "tokenFile", "username", "exec", "auth-provider"])
async def test_credentials_are_never_sent_without_tls(tmp_path: Path, method: str) -> None:
    """kubectl sends whom to act as, and nothing else."""
    write(tmp_path / "token", "abc")
    methods: dict[str, dict[str, Any]] = {
        "token": {"token": "abc"},
        "tokenFile": {"tokenFile": "token"},
        "username": {"username": "me", "password": "abc"},
        "exec": plugin(tmp_path, {"token": "abc"}),
        "auth-provider": {"auth-provider": {"name": "oidc", "config": {"id-token": jwt(NOW)}}},
    }
    async with serving(accept) as wire:
        path = write(tmp_path / "k", config(wire.url, {**methods[method], "as": "jane"}))
        with capture_logs() as logs:
            async with asked(wire, path) as seen:
                assert "authorization" not in seen.headers
                assert seen.headers["impersonate-user"] == "jane"
    assert not (tmp_path / "runs").exists(), "no plugin is run for nothing"
    assert [entry["log_level"] for entry in logs if "without TLS" in entry["event"]] == ["debug"], "of this computer"


@pytest.mark.parametrize(
    ("server", "level"),
    [
        ("http://api.example.com", "warning"),
        ("http://192.0.2.7:8080", "warning"),
        ("http://localhost:8080", "debug"),
        ("http://[::1]:8080", "debug"),
    ],
)
async def test_credentials_that_are_held_back_are_worth_a_warning_unless_the_server_is_this_computer(
    tmp_path: Path, server: str, level: str
) -> None:
    path = write(tmp_path / "k", config(server, {"token": "abc"}))
    with capture_logs() as logs:
        connection = await connect(kubeconfig=str(path))
        await connection.close()
    assert [entry["log_level"] for entry in logs if "without TLS" in entry["event"]] == [level]


async def test_a_user_name_in_the_url_becomes_basic_authentication(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server()) as wire:
        url = wire.url.replace("https://", "https://me:p%40w@") + "/prefix/?a=b#c"
        path = write(tmp_path / "k", config(url, **CA))
        async with asked(wire, path) as seen:
            assert seen.headers["authorization"] == "Basic " + base64.b64encode(b"me:p@w").decode()
            assert seen.target == "/prefix/version"
        async with await connected(path) as connection:
            assert connection.server == f"{wire.url}/prefix"


@pytest.mark.parametrize("inline", [True, False])
async def test_a_client_certificate_inline_or_by_file(tmp_path: Path, pki: Pki, inline: bool) -> None:
    certificate, key = pki.client("jane")
    write(tmp_path / "tls" / "c.pem", certificate)
    write(tmp_path / "tls" / "k.pem", key)
    user = (
        {
            "client-certificate-data": base64.b64encode(certificate.encode()).decode(),
            "client-key-data": base64.b64encode(key.encode()).decode(),
        }
        if inline
        else {"client-certificate": "tls/c.pem", "client-key": "tls/k.pem"}
    )
    cluster = {"certificate-authority-data": pki.ca_data} if inline else {"certificate-authority": "ca.crt"}
    async with serving(accept, pki.server(client=ssl.CERT_REQUIRED)) as wire:
        path = write(tmp_path / "k", config(wire.url, user, **cluster))
        async with asked(wire, path) as seen:
            assert seen.peer_certificate["commonName"] == "jane"
        # A second load must not trip over what the first one left behind.
        async with asked(wire, path):
            pass


def test_inline_keys_do_not_stay_on_disk(tmp_path: Path, pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    certificate, key = pki.client("jane")
    user = {
        "client-certificate-data": base64.b64encode(certificate.encode()).decode(),
        "client-key-data": base64.b64encode(key.encode()).decode(),
    }
    path = write(tmp_path / "k", config("https://x", user, **{"certificate-authority-data": pki.ca_data}))
    for _ in range(2):
        load_kubeconfig(NOW, paths=[path])
        assert list(folder.iterdir()) == []


async def test_an_exec_plugin_that_gives_a_token(tmp_path: Path, pki: Pki) -> None:
    user = plugin(tmp_path, {"token": "abc"})
    async with (
        serving(accept, pki.server()) as wire,
        asked(wire, write(tmp_path / "k", config(wire.url, user, **CA))) as seen,
    ):
        assert seen.headers["authorization"] == "Bearer abc"
    assert (tmp_path / "runs").read_text() == "me\n"


async def test_an_exec_plugin_that_gives_a_certificate(tmp_path: Path, pki: Pki) -> None:
    certificate, key = pki.client("jane")
    user = plugin(tmp_path, {"clientCertificateData": certificate, "clientKeyData": key})
    async with serving(accept, pki.server(client=ssl.CERT_REQUIRED)) as wire:
        path = write(tmp_path / "k", config(wire.url, user, **{"certificate-authority": "ca.crt"}))
        async with asked(wire, path) as seen:
            assert seen.peer_certificate["commonName"] == "jane"


def test_what_an_exec_plugin_gives_ends_when_it_says(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "abc", "expirationTimestamp": "2026-01-05T13:00:00Z"})
    access = load_kubeconfig(NOW, paths=[write(tmp_path / "k", config("https://x", user))])
    assert access.expires == datetime(2026, 1, 5, 13, tzinfo=UTC)


def exec_info(folder: Path, **section: Any) -> dict[str, Any]:
    """The exec section of a plugin that writes what it was told to a file, and its user."""
    user = plugin(folder, {"token": "abc"})
    script = folder / "plugin.py"
    told = f"open({str(folder / 'told')!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'])"
    script.write_text(script.read_text() + "\n")
    script.write_text(f"import os\n{told}\n" + script.read_text())
    user["exec"] |= section
    return user


@pytest.mark.parametrize("inline", [True, False])
def test_an_exec_plugin_is_told_about_the_cluster_when_it_asks(tmp_path: Path, pki: Pki, inline: bool) -> None:
    authority: dict[str, Any] = {"certificate-authority-data": pki.ca_data} if inline else CA
    extensions = [
        {"name": "other", "extension": {"x": 1}},
        {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}},
    ]
    cluster = {**authority, "tls-server-name": "kubernetes", "proxy-url": "http://proxy:3128", "extensions": extensions}
    content = config("https://x:6443/", exec_info(tmp_path, provideClusterInfo=True), **cluster)
    load_kubeconfig(NOW, paths=[write(tmp_path / "k", content)])
    assert json.loads((tmp_path / "told").read_text())["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://x:6443",
            "certificate-authority-data": pki.ca_data,
            "tls-server-name": "kubernetes",
            "proxy-url": "http://proxy:3128",
            "config": {"audience": "me"},
        },
    }


def test_an_exec_plugin_is_told_nothing_about_the_cluster_unless_it_asks(tmp_path: Path) -> None:
    load_kubeconfig(NOW, paths=[write(tmp_path / "k", config("https://x", exec_info(tmp_path)))])
    assert json.loads((tmp_path / "told").read_text())["spec"] == {"interactive": False}


async def test_a_refused_token_of_a_plugin_is_asked_for_again_once(tmp_path: Path, pki: Pki) -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.answer(200 if exchange.headers["authorization"] == "Bearer new" else 401, b"v1")

    user = plugin(tmp_path, {"token": "old"})
    async with serving(respond, pki.server()) as wire:
        connection = await connected(write(tmp_path / "k", config(wire.url, user, **CA)))
        async with connection:
            answer = json.loads((tmp_path / "answer.json").read_text())
            write(tmp_path / "answer.json", json.dumps({**answer, "status": {"token": "new"}}))
            await asyncio.gather(*(connection.client.raw("GET", "/version") for _ in range(20)))
    assert (tmp_path / "runs").read_text() == "me\nme\n"


async def test_a_valid_oidc_token_is_used_as_it_is(tmp_path: Path, pki: Pki) -> None:
    token = jwt(datetime.now(UTC) + timedelta(hours=1))
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    async with (
        serving(accept, pki.server()) as wire,
        asked(wire, write(tmp_path / "k", config(wire.url, user, **CA))) as seen,
    ):
        assert seen.headers["authorization"] == f"Bearer {token}"


async def test_an_expired_oidc_token_is_renewed_and_written_back(tmp_path: Path, pki: Pki) -> None:
    token = jwt(datetime.now(UTC) + timedelta(hours=1))

    async def issuer(exchange: Exchange) -> None:
        if exchange.target.startswith("/.well-known"):
            await exchange.answer(200, json.dumps({"token_endpoint": f"{idp.url}/token"}).encode())
        else:
            await exchange.answer(200, json.dumps({"id_token": token, "refresh_token": "r2"}).encode())

    async with serving(accept, pki.server()) as wire, serving(issuer, pki.server()) as idp:
        settings = {
            "id-token": jwt(datetime.now(UTC) - timedelta(hours=1)),
            "refresh-token": "r1",
            "client-id": "me",
            "client-secret": "s",
            "idp-issuer-url": idp.url,
            "idp-certificate-authority-data": pki.ca_data,
        }
        user = {"auth-provider": {"name": "oidc", "config": settings}}
        path = write(tmp_path / "k", config(wire.url, user, **CA))
        async with asked(wire, path) as seen:
            assert seen.headers["authorization"] == f"Bearer {token}"
        assert b"refresh_token=r1" in idp.seen[1].body
        assert idp.seen[1].headers["authorization"] == "Basic " + base64.b64encode(b"me:s").decode()
        kept = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
        assert (kept["id-token"], kept["refresh-token"], kept["client-id"]) == (token, "r2", "me")
        assert path.stat().st_mode & 0o77 == 0


async def test_an_identity_provider_with_an_unknown_certificate_gets_no_secrets(tmp_path: Path, pki: Pki) -> None:
    """The library's own refresh does not check certificates unless a CA is given."""
    async with serving(accept, pki.server()) as idp:
        settings = {"id-token": jwt(NOW), "refresh-token": "r", "client-id": "me", "idp-issuer-url": idp.url}
        user = {"auth-provider": {"name": "oidc", "config": settings}}
        with pytest.raises(ConfigError, match="certificate verify failed"):
            await connected(write(tmp_path / "k", config("https://x", user)))
        assert idp.seen == []


@pytest.mark.parametrize("where", ["/.well-known", "/token"])
async def test_a_refresh_token_follows_no_redirect(tmp_path: Path, pki: Pki, where: str) -> None:
    async def issuer(exchange: Exchange) -> None:
        if exchange.target.startswith(where):
            await exchange.answer(307, Location=f"{other.url}/elsewhere")
        else:
            await exchange.answer(200, json.dumps({"token_endpoint": f"{idp.url}/token"}).encode())

    async with serving(accept, pki.server()) as other, serving(issuer, pki.server()) as idp:
        with pytest.raises(ConfigError, match="refused to renew the id-token: 307"):
            await connected(write(tmp_path / "k", config("https://x", oidc_user(idp.url, pki))))
        assert other.seen == []


async def test_a_refresh_token_is_not_sent_without_tls(tmp_path: Path, pki: Pki) -> None:
    async def issuer(exchange: Exchange) -> None:
        await exchange.answer(200, json.dumps({"token_endpoint": f"{other.url}/token"}).encode())

    async with serving(accept) as other, serving(issuer, pki.server()) as idp:
        with pytest.raises(ConfigError, match=r"token_endpoint of .* is not an https:// URL"):
            await connected(write(tmp_path / "k", config("https://x", oidc_user(idp.url, pki))))
        assert other.seen == []


def oidc_user(issuer: str, pki: Pki) -> dict[str, Any]:
    """A user whose token has expired."""
    settings = {
        "id-token": jwt(datetime.now(UTC) - timedelta(hours=1)),
        "refresh-token": "r1",
        "client-id": "me",
        "idp-issuer-url": issuer,
        "idp-certificate-authority-data": pki.ca_data,
    }
    return {"auth-provider": {"name": "oidc", "config": settings}}


async def test_impersonation_is_asked_for_by_headers_beside_the_credentials(tmp_path: Path, pki: Pki) -> None:
    """As kubectl does; going on without it would act as somebody else than the file says."""
    whom = {
        "as": "jane",
        "as-uid": "4711",
        "as-groups": ["editors", "auditors, all"],
        "as-user-extra": {"scopes": ["view", "edit"], "example.com/team 50%": ["a"]},
    }
    async with serving(accept, pki.server()) as wire:
        path = write(tmp_path / "k", config(wire.url, {"token": "abc", **whom}, **CA))
        async with asked(wire, path) as seen:
            assert seen.headers["authorization"] == "Bearer abc"
            shown = [(name, value) for name, value in seen.fields if name.startswith("Impersonate-")]
    assert shown == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "4711"),
        ("Impersonate-Group", "editors"),
        ("Impersonate-Group", "auditors, all"),
        ("Impersonate-Extra-example.com%2Fteam%2050%25", "a"),
        ("Impersonate-Extra-scopes", "view"),
        ("Impersonate-Extra-scopes", "edit"),
    ]


async def test_whom_to_act_as_follows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fivespot.runtime.client.auth.CHECK_SECONDS", 0.0)
    async with serving(accept) as wire:
        path = write(tmp_path / "k", config(wire.url, {"token": "abc", "as": "jane"}))
        async with await connected(path) as connection:
            await connection.check()
            write(path, config(wire.url, {"token": "abc", "as": "joe"}))
            await connection.check()
            write(path, config(wire.url, {"token": "abc"}))
            await connection.check()
        assert [seen.headers.get("impersonate-user") for seen in wire.seen] == ["jane", "joe", None]


# -- the way to the server -------------------------------------------------------------------------------------------


async def test_a_server_that_nobody_vouches_for_is_refused(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server()) as wire:
        connection = await connected(write(tmp_path / "k", config(wire.url, {"token": "hunter2"})))
        async with connection:
            with pytest.raises(ConfigError, match=r"kubeconfig .*/k, context here: cannot reach https.*certificate"):
                await connection.check()
        assert wire.seen == []


async def test_verification_is_off_only_when_the_file_says_so(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server()) as wire:
        path = write(tmp_path / "k", config(wire.url, {"token": "abc"}, **{"insecure-skip-tls-verify": True}))
        async with asked(wire, path) as seen:
            assert seen.headers["authorization"] == "Bearer abc"


async def test_the_name_to_expect_can_be_given(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server("kubernetes.example")) as wire:
        cluster = {"certificate-authority-data": pki.ca_data}
        wrong = await connected(write(tmp_path / "wrong", config(wire.url, {"token": "a"}, **cluster)))
        async with wrong:
            with pytest.raises(ConfigError, match="mismatch"):
                await wrong.check()
        path = write(
            tmp_path / "k", config(wire.url, {"token": "a"}, **cluster, **{"tls-server-name": "kubernetes.example"})
        )
        async with asked(wire, path):
            pass


async def tunnel(exchange: Exchange) -> None:
    """Serve CONNECT for one connection, as an HTTP proxy does."""
    host, port = exchange.target.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    await exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    async with asyncio.TaskGroup() as group:
        group.create_task(pump(exchange.reader, writer))
        group.create_task(pump(reader, exchange.writer))
    exchange.keep = False


async def test_a_proxy_leads_to_the_server(tmp_path: Path, pki: Pki) -> None:
    async with serving(tunnel) as proxy, serving(accept, pki.server()) as wire:
        cluster = {"certificate-authority-data": pki.ca_data, "proxy-url": f"http://me:pw@127.0.0.1:{proxy.port}"}
        path = write(tmp_path / "k", config(wire.url, {"token": "abc"}, **cluster))
        async with asked(wire, path) as seen:
            assert seen.headers["authorization"] == "Bearer abc"
        assert proxy.seen[0].method == "CONNECT"
        assert proxy.seen[0].headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:pw").decode()
        assert "authorization" not in proxy.seen[0].headers


async def test_a_renewed_ca_and_server_certificate_are_taken_up(
    tmp_path: Path, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kube-rs#1962: the old CA stayed in use until a restart."""
    monkeypatch.setattr("fivespot.runtime.client.auth.CHECK_SECONDS", 0.0)
    path = write(tmp_path / "k", config("", {"token": "abc"}, **{"certificate-authority": "ca.crt"}))
    async with serving(accept, pki.server()) as old:
        write(path, config(old.url, {"token": "abc"}, **{"certificate-authority": "ca.crt"}))
        connection = await connected(path)
        await connection.check()
    other = Pki(tmp_path)
    async with serving(accept, other.server()) as new, connection:
        write(path, config(new.url, {"token": "abc"}, **{"certificate-authority": "ca.crt"}))
        await connection.check()
        assert len(new.seen) == 1


# -- which files, which context --------------------------------------------------------------------------------------


async def test_several_files_are_merged_and_the_first_wins(
    tmp_path: Path, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(accept, pki.server()) as wire:
        first = {**config(wire.url, {"token": "first"}, **CA), "current-context": ""}
        del first["contexts"]
        second = config("http://second.invalid", {"token": "second"})
        paths = [tmp_path / "absent", write(tmp_path / "a", first), write(tmp_path / "b", second)]
        monkeypatch.setenv("KUBECONFIG", ":".join(str(path) for path in paths))
        async with asked(wire) as seen:
            assert seen.headers["authorization"] == "Bearer first"


async def test_a_context_can_be_chosen_and_says_the_namespace(tmp_path: Path) -> None:
    content = config("http://x", {"token": "a"})
    content["contexts"].append({"name": "there", "context": {"cluster": "c"}})
    path = write(tmp_path / "k", content)
    async with await connected(path) as connection:
        assert (connection.namespace, connection.in_cluster, connection.server) == ("team", False, "http://x")
    async with await connected(path, "there") as connection:
        assert connection.namespace == "default"
        assert connection.source == f"kubeconfig {path}, context there"


async def test_the_usual_file_is_found(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server()) as wire:
        cluster = {"certificate-authority": str(tmp_path / "ca.crt")}
        write(tmp_path / "home" / ".kube" / "config", config(wire.url, {"token": "abc"}, **cluster))
        async with asked(wire) as seen:
            assert seen.headers["authorization"] == "Bearer abc"


async def test_in_a_pod_the_service_account_is_used_and_its_token_read_again(
    tmp_path: Path, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nolar/kopf#926, client-go#1381: the token of a pod changes while it runs; many end in a newline."""
    account = tmp_path / "account"
    write(account / "token", "one\n")
    write(account / "namespace", "spot-system\n")
    write(account / "ca.crt", (tmp_path / "ca.crt").read_text())
    monkeypatch.setattr("fivespot.runtime.client.connection.SERVICE_ACCOUNT", account)
    monkeypatch.setattr("fivespot.runtime.client.auth.CHECK_SECONDS", 0.0)
    async with serving(accept, pki.server()) as wire:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(wire.port))
        connection = await connected()
        async with connection:
            assert (connection.in_cluster, connection.namespace) == (True, "spot-system")
            await connection.check()
            write(account / "token", "two\n")
            await connection.check()
        assert [seen.headers["authorization"] for seen in wire.seen] == ["Bearer one", "Bearer two"]
        assert wire.connections == 1


def test_what_is_given_goes_before_what_is_found(tmp_path: Path) -> None:
    write(tmp_path / "account" / "token", "t")
    pod = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    places = {"service_account": tmp_path / "account", "home": tmp_path / "home"}
    assert select_source(None, None, pod, **places)[1]
    assert not select_source("k", None, pod, **places)[1]
    assert not select_source(None, None, {**pod, "KUBECONFIG": "k"}, **places)[1]
    with pytest.raises(ConfigError, match="no kubeconfig: none was given"):
        select_source(None, "ctx", pod, **places)
    write(tmp_path / "home" / ".kube" / "config", "")
    assert not select_source(None, "ctx", pod, **places)[1]


# -- what cannot be used ---------------------------------------------------------------------------------------------

GOOD = config("https://x", {"token": "hunter2"})
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "true", "interactiveMode": "Never"}


def changed(**parts: Any) -> dict[str, Any]:
    return {**GOOD, **parts}


def user(**section: Any) -> dict[str, Any]:
    return config("https://x", {name.replace("_", "-"): value for name, value in section.items()})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no current-context is set"),
        ("a: [b", "not valid YAML in line 1"),
        ("users:\n- token: hunter2\n  :\t- x: hunter2", "not valid YAML in line"),
        ("- a", "not a kubeconfig, but a list"),
        ("hunter2", "not a kubeconfig, but a str"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (changed(**{"current-context": "nowhere"}), "there is no context named 'nowhere'"),
        (changed(clusters=None), "there is no cluster named 'c'"),
        (changed(users=[]), "there is no user named 'u'"),
        (changed(clusters={"c": {}}), "clusters is not a list of entries with a name"),
        (changed(users=[{"user": {"token": "hunter2"}}]), "users is not a list of entries with a name"),
        (changed(clusters=[{"name": "c"}]), "cluster 'c' has no cluster section"),
        (changed(users=[{"name": "u", "user": "hunter2"}]), "user 'u' has no user section"),
        (changed(contexts=[{"name": "here", "context": {"user": "u"}}]), "there is no cluster named ''"),
        (config(""), "server is not an http:// or https:// URL"),
        (config("ftp://x"), "server is not an http:// or https:// URL"),
        (config("https://[x"), "server is not an http:// or https:// URL"),
        (config("https://x", None, **{"certificate-authority": "absent.crt"}), r"/absent.crt does not exist"),
        (config("https://x", None, **{"certificate-authority-data": "!"}), "certificate-authority-data is not base64"),
        (config("https://x", None, **{"certificate-authority-data": "aGVsbG8="}), "no usable CA certificate"),
        (
            config("https://x", {"token": "hunter2"}, **{"proxy-url": "socks5://x"}),
            "proxy-url: SOCKS proxies are not",
        ),
        (config("https://x", {"token": "hunter2"}, **{"proxy-url": "ftp://x"}), "proxy-url: the proxy must be an http"),
        (user(tokenFile="absent"), r"tokenFile: .*/absent: No such file"),
        (user(token="hunter2\nhunter2"), "line breaks or control characters"),
        (user(**{"as-groups": ["admins"]}), "context here: as-uid, as-groups and as-user-extra need .* in as"),
        (user(**{"as": "two\nlines"}), "as is not a text of one line"),
        (user(**{"as": "jane", "as-groups": "admins"}), "as-groups is not a list of texts"),
        (user(**{"as": "jane", "as-groups": [7]}), "as-groups is not a list of texts"),
        (user(**{"as": "jane", "as-user-extra": ["x"]}), "as-user-extra is not a mapping"),
        (user(**{"as": "jane", "as-user-extra": {"x": "y"}}), "as-user-extra.x is not a list of texts"),
        (user(client_certificate_data="aGVsbG8=", client_key_data="aGVsbG8="), "no usable client certificate"),
        (user(token=jwt(datetime(2025, 12, 31, tzinfo=UTC))), "the token expired at 2025-12-31T00:00:00Z"),
        (user(exec={"command": "x"}), "exec: apiVersion must be specified"),
        (
            user(exec={**EXEC, "command": "./absent", "installHint": "get it"}),
            r"absent: No such file.*\(get it\)",
        ),
        (user(exec="hunter2"), "exec is not a mapping"),
        (user(exec={**EXEC, "apiVersion": "v1"}), "exec: apiVersion must be one of"),
        (user(exec={**EXEC, "interactiveMode": ""}), "exec: interactiveMode must be one of"),
        (user(exec={**EXEC, "interactiveMode": "Always"}), "exec: the plugin needs a terminal"),
        (user(exec=EXEC, auth_provider={"name": "oidc"}), "exec and auth-provider are both specified"),
        (user(token="hunter2", username="me"), "token and username are both specified"),
        (user(token=12345678), "token is not a string"),
        (user(client_certificate="k"), "client-key or client-key-data must be specified"),
        (user(auth_provider={"name": "gcp"}), "auth-provider: oidc is the only one that is supported"),
        (
            config("https://me:hunter2@x", {"token": "abc"}),
            "server has a user name in its URL, and the user has token;",
        ),
        (config("https://me:hunter2@x", {"exec": EXEC}), "server has a user name in its URL, and the user has exec;"),
        (config("https://me:hunter2@[x", {"token": "abc"}), "server is not an http:// or https:// URL"),
        (
            config("https://x", None, **{"certificate-authority": "k", "insecure-skip-tls-verify": True}),
            "both specified",
        ),
        (changed(users=GOOD["users"] * 2), "users has 'u' twice"),
        (user(auth_provider={"name": "oidc"}), "oidc: missing configuration"),
        (
            user(auth_provider={"name": "oidc", "config": {"id-token": jwt(NOW), "client-secret": "hunter2"}}),
            "oidc: the id-token has expired, and without idp-issuer-url",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line_without_secrets(
    tmp_path: Path, content: Any, message: str
) -> None:
    path = tmp_path / "k"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write(path, content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_kubeconfig(NOW, paths=[path])
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert "hunter2" not in text


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kubeconfig .*/absent does not exist"):
        load_kubeconfig(NOW, paths=[tmp_path / "absent"], must_exist=True)
    with pytest.raises(ConfigError, match=r"kubeconfig .*/absent does not exist"):
        load_kubeconfig(NOW, paths=[tmp_path / "absent"])
    with pytest.raises(ConfigError, match="Is a directory"):
        load_kubeconfig(NOW, paths=[tmp_path])


def test_an_expired_client_certificate_is_told(tmp_path: Path, pki: Pki) -> None:
    certificate, key = pki.client("jane", not_after=datetime(2026, 1, 1, tzinfo=UTC))
    write(tmp_path / "c", certificate)
    write(tmp_path / "y", key)
    content = config("https://x", {"client-certificate": "c", "client-key": "y"})
    with pytest.raises(ConfigError, match="the client certificate expired at 2026-01-01T00:00:00Z"):
        load_kubeconfig(NOW, paths=[write(tmp_path / "k", content)])


def test_a_plugin_that_fails_says_why_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "k", config("https://x", plugin(tmp_path, {}, code=3)))
    with pytest.raises(ConfigError, match=r"exec: process returned 3\. a reason of two lines$"):
        load_kubeconfig(NOW, paths=[path])
    assert capfd.readouterr() == ("", "")


def test_a_plugin_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fivespot.runtime.client.kubeconfig._PLUGIN_SECONDS", 0.2)
    user = plugin(tmp_path, {})
    pid = tmp_path / "pid"
    write(
        tmp_path / "plugin.py",
        "import os, pathlib, time\n"
        f"path = pathlib.Path({str(pid)!r})\n"
        "path.with_suffix('.new').write_text(str(os.getpid()))\n"
        "path.with_suffix('.new').rename(path)\n"
        "time.sleep(60)\n",
    )
    with pytest.raises(ConfigError, match="did not answer in 0 s"):
        load_kubeconfig(NOW, paths=[write(tmp_path / "k", config("https://x", user))])
    if pid.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


def test_a_plugin_may_write_much_to_its_standard_error(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "abc"})
    script = tmp_path / "plugin.py"
    script.write_text("import sys; print('x' * 1_000_000, file=sys.stderr)\n" + script.read_text())
    assert load_kubeconfig(NOW, paths=[write(tmp_path / "k", config("https://x", user))]).authorization == "Bearer abc"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("hunter2", "output is not JSON"),
        ("[]", "output has no status"),
        ('{"apiVersion": "client.authentication.k8s.io/v1", "status": null}', "output has no status"),
        ('{"apiVersion": "v9", "status": {}}', "returned v9 instead of client.authentication.k8s.io/v1"),
        ('{"apiVersion": "client.authentication.k8s.io/v1", "status": {}}', "neither a token nor a certificate"),
        (
            '{"apiVersion": "client.authentication.k8s.io/v1", "status": {"clientKeyData": "hunter2"}}',
            "a certificate or a key, but not both",
        ),
    ],
)
def test_a_plugin_that_answers_nonsense_is_told_in_one_line(tmp_path: Path, answer: str, words: str) -> None:
    path = write(tmp_path / "k", config("https://x", plugin(tmp_path, {})))
    (tmp_path / "answer.json").write_text(answer)
    with pytest.raises(ConfigError, match=words) as caught:
        load_kubeconfig(NOW, paths=[path])
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_server_that_cannot_be_reached_or_refuses_is_told_in_one_line(tmp_path: Path) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.answer(401, b"{}")

    async with serving(refuse) as wire:
        connection = await connected(write(tmp_path / "k", config(wire.url, {"token": "hunter2"})))
        with pytest.raises(ConfigError, match=r"/k, context here: http://127.0.0.1:\d+ does not accept") as caught:
            await connection.check()
        assert isinstance(caught.value.__cause__, UnauthorizedError)
        await connection.close()
    connection = await connected(write(tmp_path / "k", config(wire.url, {"token": "hunter2"})))
    async with connection:
        with pytest.raises(ConfigError, match=r"/k, context here: cannot reach http://127.0.0.1:\d+: ") as caught:
            await connection.check()
    assert "\n" not in str(caught.value)


# -- plugins that hang -----------------------------------------------------------------------------------------------


def hanging(folder: Path) -> dict[str, Any]:
    """The exec section of a plugin that writes its process id to a file, and then says nothing, nor does its child."""
    user = plugin(folder, {"token": "abc"})
    write(
        folder / "plugin.py",
        "import os, pathlib, subprocess, sys, time\n"
        f"path = pathlib.Path({str(folder / 'pid')!r})\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'])\n"
        "path.with_suffix('.new').write_text(f'{os.getpid()} {child.pid}')\n"
        "path.with_suffix('.new').rename(path)\n"
        "time.sleep(60)\n",
    )
    return user


async def plugin_ids(folder: Path) -> list[int]:
    """The process ids of a hanging plugin and its child, once it runs."""
    path = folder / "pid"
    while not path.exists():
        await asyncio.sleep(0.02)
    return [int(number) for number in path.read_text().split()]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_connecting_can_be_cancelled_while_a_plugin_hangs(tmp_path: Path) -> None:
    path = write(tmp_path / "k", config("https://x", hanging(tmp_path)))
    connecting = asyncio.create_task(connected(path))
    number, child = await plugin_ids(tmp_path)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    try:
        async with asyncio.timeout(5):
            while is_running(number):
                await asyncio.sleep(0.02)
    finally:
        os.kill(child, signal.SIGKILL)


async def test_closing_does_not_wait_for_a_plugin_that_hangs(
    tmp_path: Path, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fivespot.runtime.client.auth.CHECK_SECONDS", 0.0)
    async with serving(accept, pki.server()) as wire:
        path = write(tmp_path / "k", config(wire.url, {"token": "abc"}, **CA))
        connection = await connected(path)
        write(path, config(wire.url, hanging(tmp_path), **CA))
        request = asyncio.create_task(connection.client.raw("GET", "/version"))
        number, child = await plugin_ids(tmp_path)
        try:
            async with asyncio.timeout(5):
                await connection.close()
                with pytest.raises(TransportError):
                    await request
                while is_running(number):
                    await asyncio.sleep(0.02)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_signal_while_a_plugin_hangs_ends_the_program(tmp_path: Path) -> None:
    path = write(tmp_path / "k", config("https://x", hanging(tmp_path)))
    code = f"from fivespot.runtime import run\nrun(lambda manager: None, name='p', kubeconfig={str(path)!r})\n"
    program = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    _, child = asyncio.run(plugin_ids(tmp_path))
    program.send_signal(signal.SIGTERM)
    try:
        assert program.wait(timeout=20) == 0
    finally:
        os.kill(child, signal.SIGKILL)
        program.kill()


# -- the library -----------------------------------------------------------------------------------------------------


def test_reading_a_kubeconfig_does_not_load_the_generated_client(tmp_path: Path) -> None:
    """34 MB of a manager's memory."""
    path = write(tmp_path / "k", config("https://x", {"token": "abc"}))
    code = f"""
import sys
from datetime import datetime, UTC
from pathlib import Path
from fivespot.runtime.client.kubeconfig import load_kubeconfig
load_kubeconfig(datetime.now(UTC), paths=[Path({str(path)!r})])
assert not [name for name in sys.modules if name.startswith("kubernetes_asyncio")]
import kubernetes_asyncio.config.kube_config
assert kubernetes_asyncio.client.ApiClient and kubernetes_asyncio.config.kube_config.ApiClient
load_kubeconfig(datetime.now(UTC), paths=[Path({str(path)!r})])
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_program_that_has_loaded_the_library_shares_it(tmp_path: Path) -> None:
    code = """
import kubernetes_asyncio.config.kube_config as library
from fivespot.runtime.client.kubeconfig_loader import KubeConfigLoader
assert KubeConfigLoader is library.KubeConfigLoader
"""
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_connecting_needs_no_arguments(tmp_path: Path, pki: Pki) -> None:
    async with serving(accept, pki.server()) as wire:
        cluster = {"certificate-authority": str(tmp_path / "ca.crt")}
        write(tmp_path / "home" / ".kube" / "config", config(wire.url, {"token": "abc"}, **cluster))
        async with await connect() as connection:
            await connection.client.raw("GET", "/version")
        assert wire.seen[0].headers["authorization"] == "Bearer abc"
        assert wire.seen[0].headers["user-agent"].startswith("fivespot")
