"""Access by a kubeconfig, read as kubectl reads it.

Merging, validation and precedence follow client-go's clientcmd; certificates, tokens and plugins are left to
kubernetes_asyncio's loader, which gets one context with absolute paths. It needs an event loop and writes inline keys
to files, so all of it runs in a thread, and the files are removed when it returns.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import yaml

from fivespot.runtime.errors import ConfigError
from fivespot.runtime.objects import rfc3339

from .auth import Access, digest_files
from .auth_plugins import ContextLoader
from .kubeconfig_loader import ConfigException
from .proxy import check_proxy
from .responses import one_line
from .tls import client_context, not_after

__all__ = ["impersonation_headers", "load_kubeconfig"]

_PLUGIN_SECONDS: Final = 60.0
"""Time limit of an exec plugin or an identity provider: some plugins prompt a person."""
_NEEDS_ESCAPE: Final = re.compile(rb"[^0-9A-Za-z!#$&'*+.^_`|~-]")
"""Bytes that a header's name cannot hold (RFC 9110, 5.6.2), and the escape character itself."""
_INLINE: Final = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key")}
"""Fields with a file, which have a ``-data`` twin with the file's content in base64."""
_PATHS: Final = {**_INLINE, "user": (*_INLINE["user"], "tokenFile")}
_TEXTS: Final = {
    "cluster": ("server", "certificate-authority", "certificate-authority-data", "tls-server-name", "proxy-url"),
    "user": (
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "token",
        "tokenFile",
        "username",
        "password",
    ),
}
_EXCLUSIVE: Final = {
    "cluster": (("certificate-authority", "certificate-authority-data"),),
    "user": (
        ("client-certificate", "client-certificate-data"),
        ("client-key", "client-key-data"),
        ("exec", "auth-provider"),
        ("token", "username"),
        ("token", "password"),
        ("tokenFile", "username"),
    ),
}
"""Fields of which a section may have one only."""
_METHODS: Final = ("token", "tokenFile", "username", "exec", "auth-provider")
"""Fields of a user that give an ``Authorization`` header."""
_SECRETS: Final = frozenset(
    {"token", "password", "client-key-data", "id-token", "refresh-token", "access-token", "client-secret", "value"}
)
_SHORTEST_SECRET: Final = 6
"""Length below which a value is not redacted: it protects nothing, and messages would become unreadable."""
_MALFORMED: Final = (ConfigException, LookupError, TypeError, AttributeError, AssertionError, ValueError, OSError)
"""Exceptions of kubernetes_asyncio's loader for content that it does not expect."""


@dataclass(frozen=True, slots=True)
class _Context:
    """One context of the merged files, with absolute paths."""

    name: str
    namespace: str
    cluster: dict[str, Any]
    user: dict[str, Any] = field(repr=False)
    user_name: str
    user_file: Path | None
    source: str


def load_kubeconfig(
    now: datetime,
    interrupt: threading.Event | None = None,
    *,
    paths: Sequence[Path],
    context: str | None = None,
    must_exist: bool = False,
) -> Access:
    """Read kubeconfig files and run the plugin that they name. Blocking.

    :param interrupt: ends a running plugin when set.
    :param paths: of entries with the same name the first file's is used; missing files are skipped unless
        ``must_exist``.
    :param context: the context to use; None for the current one.
    :raises ConfigError: in one line, which file and field cannot be used, and why.
    """
    present = [path for path in paths if path.exists()]
    if not present or (must_exist and len(present) < len(paths)):
        missing = next(path for path in paths if not path.exists())
        raise ConfigError(f"kubeconfig {missing} does not exist")
    selected = _select([(path, _read(path)) for path in present], context)
    try:
        return _load(selected, now, present, interrupt or threading.Event())
    except ConfigError as error:
        raise ConfigError(f"{selected.source}: {_redacted(str(error), selected)}") from error
    except TimeoutError as error:
        raise ConfigError(
            f"{selected.source}: the plugin or identity provider did not answer in {_PLUGIN_SECONDS:.0f} s"
        ) from error
    except _MALFORMED as error:
        raise ConfigError(f"{selected.source}: {_explain(error, selected)}") from error


# -- files and contexts ----------------------------------------------------------------------------------------------


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"kubeconfig {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"kubeconfig {path}: not UTF-8 text") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        # The error's own text quotes the line, which may be a secret.
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"kubeconfig {path}: not valid YAML{where}: {getattr(error, 'problem', '')}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig, but a {type(content).__name__}")
    return content


def _select(documents: Sequence[tuple[Path, Mapping[str, Any]]], context: str | None) -> _Context:
    files = ", ".join(str(path) for path, _ in documents)
    name = context or next((str(d["current-context"]) for _, d in documents if d.get("current-context")), "")
    if not name:
        raise ConfigError(f"kubeconfig {files}: no current-context is set and none was given")
    source = f"kubeconfig {files}, context {name}"
    _, entry = _find(documents, "context", name, source)
    cluster_file, cluster = _find(documents, "cluster", str(entry.get("cluster") or ""), source)
    user_name = str(entry.get("user") or "")
    user_file, user = _find(documents, "user", user_name, source) if user_name else (None, {})
    return _Context(
        name,
        str(entry.get("namespace") or "default"),
        _checked("cluster", cluster, cluster_file, source),
        _checked("user", user, user_file, source) if user_file else user,
        user_name,
        user_file,
        source,
    )


def _find(
    documents: Sequence[tuple[Path, Mapping[str, Any]]], kind: str, name: str, source: str
) -> tuple[Path, dict[str, Any]]:
    for path, document in documents:
        entries = document.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and "name" in entry for entry in entries):
            raise ConfigError(f"kubeconfig {path}: {kind}s is not a list of entries with a name")
        found = [entry for entry in entries if entry["name"] == name]
        if len(found) > 1:
            raise ConfigError(f"kubeconfig {path}: {kind}s has {name!r} twice")
        if found:
            body = found[0].get(kind)
            if body is None and kind == "user":
                body = {}
            if not isinstance(body, dict):
                raise ConfigError(f"kubeconfig {path}: {kind} {name!r} has no {kind} section")
            return path, dict(body)
    raise ConfigError(f"{source}: there is no {kind} named {name!r}")


def _checked(kind: str, section: dict[str, Any], file: Path, source: str) -> dict[str, Any]:
    """The section without empty fields and with absolute paths, which are relative to the folder of the file.

    A file that is a symbolic link counts where the link is, not where it leads.
    """
    for name in _TEXTS[kind]:
        if section.get(name) is None or section[name] == "":
            section.pop(name, None)
        elif not isinstance(section[name], str):
            raise ConfigError(f"{source}: {name} is not a string")
    for one, other in _EXCLUSIVE[kind]:
        if section.get(one) and section.get(other):
            raise ConfigError(f"{source}: {one} and {other} are both specified; only one is allowed")
    base = file.absolute().parent
    for name in _PATHS[kind]:
        if name in section:
            section[name] = str(base / section[name])
    plugin = section.get("exec")
    if plugin is not None and kind == "user":
        if not isinstance(plugin, dict):
            raise ConfigError(f"{source}: exec is not a mapping")
        if "/" in str(plugin.get("command", "")):
            section["exec"] = {**plugin, "command": str(base / str(plugin["command"]))}
    return section


# -- access ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Loaded:
    """The attributes that kubernetes_asyncio's loader sets, in place of its ``client.Configuration``."""

    host: str = ""
    api_key: dict[str, str] = field(default_factory=dict)
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    plugin_expiry: datetime | None = None


def _load(selected: _Context, now: datetime, present: Sequence[Path], interrupt: threading.Event) -> Access:
    server, basic = _server(selected)
    _check_certificates(selected)
    impersonation = impersonation_headers(selected.user)
    proxy = selected.cluster.get("proxy-url", "")
    if proxy:
        check_proxy(proxy, "proxy-url")
    files = (*present, *_files(selected))
    digest = digest_files(files)
    # As kubectl: without TLS no credentials are sent, and no plugin is run.
    secure = server.startswith("https:")
    user = _credentials(selected.user) if secure else {}
    with tempfile.TemporaryDirectory(prefix="fivespot-") as folder:
        cluster = _as_files("cluster", {**selected.cluster, "server": server}, folder)
        loaded = _run_loader(selected, cluster, _as_files("user", user, folder), folder, interrupt)
        authorization = basic or loaded.api_key.get("BearerToken", "").strip()
        if not authorization.isprintable():
            raise ConfigError("the token holds line breaks or control characters")
        ca, certificate, key = (
            Path(name) if name else None for name in (loaded.ssl_ca_cert, loaded.cert_file, loaded.key_file)
        )
        expires = loaded.plugin_expiry or _token_expiry(authorization)
        if not (user.get("exec") or user.get("auth-provider")):
            # Nothing will renew it.
            _refuse_expired("the token", expires, now)
            expires = None
        if certificate is not None:
            _refuse_expired("the client certificate", not_after(certificate.read_bytes()), now)
        tls = client_context(ca=ca, certificate=certificate, key=key, verify=loaded.verify_ssl) if secure else None
        trust = hashlib.sha256(repr((server, loaded.verify_ssl, loaded.tls_server_name)).encode())
        for path in (ca, certificate, key):
            trust.update(hashlib.sha256(path.read_bytes() if path else b"").digest())
    return Access(
        server=server,
        authorization=authorization,
        tls=tls,
        tls_server_name=loaded.tls_server_name or "",
        proxy=proxy,
        impersonation=impersonation,
        expires=expires,
        files=files,
        files_digest=digest,
        tls_identity=trust.digest(),
        namespace=selected.namespace,
        source=selected.source,
        anonymous=not authorization and certificate is None,
    )


def _run_loader(
    selected: _Context, cluster: dict[str, Any], user: dict[str, Any], folder: str, interrupt: threading.Event
) -> _Loaded:
    content = {
        "current-context": selected.name,
        "contexts": [{"name": selected.name, "context": {"cluster": "cluster", "user": "user"}}],
        "clusters": [{"name": "cluster", "cluster": cluster}],
        # Never left out: the loader fails for a cluster with TLS and no user.
        "users": [{"name": "user", "user": user}],
    }
    loader = ContextLoader(
        content,
        folder,
        user_name=selected.user_name,
        user_file=selected.user_file,
        plugin_seconds=_PLUGIN_SECONDS,
        interrupt=interrupt,
    )
    loaded = _Loaded()

    async def load() -> None:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            await loader.load_and_set(loaded)

    asyncio.run(load())
    loaded.plugin_expiry = loader.plugin_expiry
    return loaded


def _server(selected: _Context) -> tuple[str, str]:
    """The server's URL without user info, query and fragment, and the authorization in its user info."""
    server = selected.cluster.get("server", "")
    if "://" not in server and server:
        # As in client-go, which knows host and port as well.
        server = f"http://{server}"
    try:
        url = urlsplit(server)
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError("server is not an http:// or https:// URL")
    host = url.netloc.rpartition("@")[2]
    basic = ""
    if url.username:
        others = [
            name for name in ("token", "tokenFile", "username", "exec", "auth-provider") if selected.user.get(name)
        ]
        if others:
            raise ConfigError(f"server has a user name in its URL, and the user has {others[0]}; only one is allowed")
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
        basic = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return urlunsplit((url.scheme, host, url.path.rstrip("/"), "", "")), basic


def _check_certificates(selected: _Context) -> None:
    cluster, user = selected.cluster, selected.user
    authority = "certificate-authority" in cluster or "certificate-authority-data" in cluster
    if authority and cluster.get("insecure-skip-tls-verify"):
        raise ConfigError("insecure-skip-tls-verify and certificate-authority are both specified; only one is allowed")
    certificate = "client-certificate" in user or "client-certificate-data" in user
    if certificate and "client-key" not in user and "client-key-data" not in user:
        raise ConfigError("client-key or client-key-data must be specified beside the client certificate")
    for kind, section in (("cluster", cluster), ("user", user)):
        for name in _INLINE[kind]:
            if name in section and not Path(section[name]).is_file():
                raise ConfigError(f"{name}: {section[name]} does not exist")


def _files(selected: _Context) -> list[Path]:
    sections = (("cluster", selected.cluster), ("user", selected.user))
    return [Path(section[name]) for kind, section in sections for name in _PATHS[kind] if name in section]


def _credentials(user: Mapping[str, Any]) -> dict[str, Any]:
    """The user with the one method that kubectl uses: a token file, its token, name and password, or a plugin."""
    chosen = dict(user)
    file = chosen.pop("tokenFile", None)
    if file is not None:
        try:
            token = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            token = ""
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
        else:
            reason = "the file is empty"
        # The token field is what client-go falls back to.
        token = token or chosen.get("token", "")
        if not token:
            raise ConfigError(f"tokenFile: {file}: {reason}")
        chosen["token"] = token
    if "token" in chosen or "username" in chosen:
        chosen.pop("exec", None)
        chosen.pop("auth-provider", None)
    if "username" in chosen:
        chosen.setdefault("password", "")
    provider = chosen.get("auth-provider")
    if provider and (not isinstance(provider, dict) or provider.get("name") != "oidc"):
        raise ConfigError("auth-provider: oidc is the only one that is supported; use an exec plugin")
    return chosen


def _as_files(kind: str, section: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The section with its inline certificates and keys in files."""
    written = dict(section)
    for name in _INLINE[kind]:
        data = written.pop(f"{name}-data", None)
        if data is None:
            continue
        try:
            content = base64.b64decode("".join(data.split()), validate=True)
        except ValueError as error:
            raise ConfigError(f"{name}-data is not base64") from error
        path = Path(folder) / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        written[name] = str(path)
    return written


def _token_expiry(authorization: str) -> datetime | None:
    """Read the ``exp`` claim of a bearer token that is a JWT (RFC 7519, 4.1.4); None for other tokens."""
    parts = authorization.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (binascii.Error, ValueError, LookupError, TypeError, OverflowError, OSError):
        return None


def _refuse_expired(what: str, ends: datetime | None, now: datetime) -> None:
    if ends is not None and ends <= now:
        raise ConfigError(f"{what} expired at {rfc3339(ends)}")


# -- impersonation ---------------------------------------------------------------------------------------------------


def impersonation_headers(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Build the ``Impersonate-*`` headers of a user section; empty if it does not impersonate.

    :raises ConfigError: a field has the wrong type, cannot be sent in a header, or lacks ``as``.
    """
    name, uid = _text(user, "as"), _text(user, "as-uid")
    groups = _texts(user.get("as-groups"), "as-groups")
    extra = user.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        raise ConfigError("as-user-extra is not a mapping of names to lists of texts")
    if not name:
        if uid or groups or extra:
            raise ConfigError("as-uid, as-groups and as-user-extra need the name of a user in as")
        return ()
    headers = [("Impersonate-User", name)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in groups]
    for key, values in extra.items():
        header = f"Impersonate-Extra-{_escaped(str(key))}"
        headers += [(header, value) for value in _texts(values, f"as-user-extra.{key}")]
    return tuple(headers)


def _text(user: Mapping[str, Any], field: str) -> str:
    value = user.get(field)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError(f"{field} is not a text of one line")
    return value


def _texts(values: Any, field: str) -> list[str]:
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, str) and value.isprintable() for value in values):
        raise ConfigError(f"{field} is not a list of texts of one line")
    return list(values)


def _escaped(key: str) -> str:
    return _NEEDS_ESCAPE.sub(lambda found: b"%%%02X" % found[0][0], key.encode()).decode()


# -- messages --------------------------------------------------------------------------------------------------------


def _explain(error: Exception, selected: _Context) -> str:
    """Describe an unexpected error in one line and without secrets."""
    text = str(error) if not isinstance(error, KeyError) else f"missing key {error}"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    plugin = selected.user.get("exec")
    if isinstance(plugin, dict) and isinstance(error, FileNotFoundError) and plugin.get("installHint"):
        text += f" ({plugin['installHint']})"
    return _redacted(text or type(error).__name__, selected)


def _redacted(text: str, selected: _Context) -> str:
    for secret in _secrets(selected.user):
        text = text.replace(secret, "***")
    return one_line(text, 500)


def _secrets(section: Any) -> list[str]:
    if isinstance(section, dict):
        own = [
            str(value) for name, value in section.items() if name in _SECRETS and len(str(value)) >= _SHORTEST_SECRET
        ]
        return own + [secret for value in section.values() for secret in _secrets(value)]
    if isinstance(section, list):
        return [secret for value in section for secret in _secrets(value)]
    return []
