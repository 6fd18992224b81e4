"""Access by a kubeconfig, as kubectl reads it.

Which files and which context count is decided here, in kubectl's way; certificates, tokens, exec plugins and OIDC are
the business of kubernetes_asyncio's loader, which gets one context with absolute paths. It needs an event loop and
writes inline keys to files, so all of it runs in a thread, and the files are gone when it returns.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import logging
import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, kube_config

from fivespot.runtime.errors import ConfigError
from fivespot.runtime.objects import rfc3339

from .auth import Access, digest_files
from .auth_plugins import VerifyingLoader
from .proxy import check_proxy
from .responses import one_line
from .tls import client_context, not_after

__all__ = ["impersonation_headers", "load_kubeconfig"]

_NEEDS_ESCAPE: Final = re.compile(rb"[^0-9A-Za-z!#$&'*+.^_`|~-]")

"""Bytes that a header's name cannot hold (RFC 9110, 5.6.2), and the escape character itself."""


def impersonation_headers(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers for the user section of a kubeconfig; none if it does not impersonate.

    :raises ConfigError: a field has the wrong type, cannot stand in a header, or misses ``as`` beside it.
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


_PLUGIN_SECONDS: Final = 60.0

"""For an exec plugin or an identity provider to answer: some plugins ask a person."""

_PATHS: Final = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}

_SECRETS: Final = frozenset(
    {"token", "password", "client-key-data", "id-token", "refresh-token", "access-token", "client-secret", "value"}
)

_SHORTEST_SECRET: Final = 6

"""Anything shorter protects nothing, and blanking it out would make messages unreadable."""

_MALFORMED: Final = (
    ConfigException,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    ValueError,
    OSError,
    aiohttp.ClientError,
)

"""What kubernetes_asyncio's loader raises for content that it does not expect."""

# The library remembers its files of inline keys in a module variable, which two threads must not change at once.
_lock = threading.Lock()

# It logs what it also raises; without a handler of its own that would be a second line on stderr.
logging.getLogger("kubernetes_asyncio").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class _Selected:
    """One context of the merged files, with absolute paths."""

    context: str
    namespace: str
    cluster: dict[str, Any]
    user: dict[str, Any]
    user_name: str
    user_file: Path | None
    source: str


def load_kubeconfig(
    now: datetime, *, paths: Sequence[Path], context: str | None = None, must_exist: bool = False
) -> Access:
    """Reads kubeconfig files and runs what plugin they name. Blocking.

    :param paths: of entries with the same name the one in the first file counts; files that do not exist are skipped
        unless ``must_exist``.
    :param context: None for the current one.
    :raises ConfigError: in one line, which file and what is wrong with it.
    """
    present = [path for path in paths if path.exists()]
    if not present or (must_exist and len(present) < len(paths)):
        missing = next(path for path in paths if not path.exists())
        raise ConfigError(f"kubeconfig {missing} does not exist")
    documents = [(path, _read(path)) for path in present]
    selected = _select(documents, context)
    files = (*present, *_files(selected))
    digest = digest_files(files)
    try:
        with _lock, tempfile.TemporaryDirectory(prefix="fivespot-") as folder:
            try:
                return _load(selected, now, files, digest, folder)
            finally:
                _forget_files(folder)
    except ConfigError as error:
        raise ConfigError(f"{selected.source}: {error}") from error
    except TimeoutError as error:
        raise ConfigError(
            f"{selected.source}: the plugin or identity provider did not answer in {_PLUGIN_SECONDS:.0f} s"
        ) from error
    except _MALFORMED as error:
        raise ConfigError(f"{selected.source}: {_explain(error, selected)}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"kubeconfig {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"kubeconfig {path}: not UTF-8 text") from error
    except yaml.YAMLError as error:
        # The error's own text quotes the line, which may be a secret.
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"kubeconfig {path}: not valid YAML{where}: {getattr(error, 'problem', '')}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig, but a {type(content).__name__}")
    return content


def _select(documents: Sequence[tuple[Path, Mapping[str, Any]]], context: str | None) -> _Selected:
    names = ", ".join(str(path) for path, _ in documents)
    chosen = context or next((str(d["current-context"]) for _, d in documents if d.get("current-context")), "")
    if not chosen:
        raise ConfigError(f"kubeconfig {names}: no current-context is set and none was given")
    source = f"kubeconfig {names}, context {chosen}"
    _, entry = _find(documents, "context", chosen, source)
    cluster_file, cluster = _find(documents, "cluster", str(entry.get("cluster") or ""), source)
    user_name = str(entry.get("user") or "")
    user_file, user = _find(documents, "user", user_name, source) if user_name else (None, {})
    _check(cluster, source)
    return _Selected(
        chosen,
        str(entry.get("namespace") or "default"),
        _absolute("cluster", cluster, cluster_file),
        _absolute("user", user, user_file) if user_file else user,
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
        for entry in entries:
            if entry["name"] == name:
                body = entry.get(kind)
                if body is None and kind == "user":
                    body = {}
                if not isinstance(body, dict):
                    raise ConfigError(f"kubeconfig {path}: {kind} {name!r} has no {kind} section")
                return path, dict(body)
    raise ConfigError(f"{source}: there is no {kind} named {name!r}")


def _check(cluster: Mapping[str, Any], source: str) -> None:
    server = cluster.get("server")
    try:
        url = urlsplit(server if isinstance(server, str) else "")
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{source}: the cluster's server is not an http:// or https:// URL")


def _absolute(kind: str, section: dict[str, Any], file: Path) -> dict[str, Any]:
    base = file.resolve().parent
    for name in _PATHS[kind]:
        if section.get(name):
            section[name] = str(base / str(section[name]))
        else:
            section.pop(name, None)
    plugin = section.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command", "")):
        section["exec"] = {**plugin, "command": str(base / str(plugin["command"]))}
    return section


def _files(selected: _Selected) -> list[Path]:
    sections = (("cluster", selected.cluster), ("user", selected.user))
    return [Path(section[name]) for kind, section in sections for name in _PATHS[kind] if name in section]


def _load(selected: _Selected, now: datetime, files: tuple[Path, ...], digest: bytes, folder: str) -> Access:
    for path in files:
        if not path.is_file():
            raise ConfigError(f"{path} does not exist")
    content = {
        "current-context": selected.context,
        "contexts": [{"name": selected.context, "context": {"cluster": "cluster", "user": "user"}}],
        "clusters": [{"name": "cluster", "cluster": selected.cluster}],
        # Never left out: the loader trips over a cluster with TLS and no user.
        "users": [{"name": "user", "user": selected.user}],
    }
    loader = VerifyingLoader(content, folder, selected.user_name, selected.user_file, _PLUGIN_SECONDS)
    configuration = Configuration()
    asyncio.run(_run(loader, configuration))
    return _access(selected, loader, configuration, now, files, digest)


async def _run(loader: VerifyingLoader, configuration: Configuration) -> None:
    async with asyncio.timeout(_PLUGIN_SECONDS):
        await loader.load_and_set(configuration)


def _access(
    selected: _Selected,
    loader: VerifyingLoader,
    configuration: Configuration,
    now: datetime,
    files: tuple[Path, ...],
    digest: bytes,
) -> Access:
    server = str(configuration.host)
    authorization = str(configuration.api_key.get("BearerToken", "")).strip()
    if not authorization.isprintable():
        raise ConfigError("the token holds line breaks or control characters")
    ca, certificate, key = (
        Path(str(name)) if name else None
        for name in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    )
    verify = bool(configuration.verify_ssl)
    token_ends = _token_expiry(authorization)
    provided = bool(selected.user.get("exec") or selected.user.get("auth-provider"))
    if not provided:
        _refuse_expired("the token", token_ends, now)
    if certificate is not None:
        _refuse_expired("the client certificate", not_after(certificate.read_bytes()), now)
    tls = None
    if server.startswith("https:"):
        tls = client_context(ca=ca if verify else None, certificate=certificate, key=key, verify=verify)
    proxy = str(configuration.proxy or "")
    trust = hashlib.sha256(repr((server, verify, configuration.tls_server_name)).encode())
    for path in (ca, certificate, key):
        trust.update(hashlib.sha256(path.read_bytes() if path else b"").digest())
    return Access(
        server=server,
        authorization=authorization,
        tls=tls,
        tls_server_name=str(configuration.tls_server_name or ""),
        proxy=check_proxy(proxy, "proxy-url") if proxy else "",
        impersonation=impersonation_headers(selected.user),
        expires=loader.plugin_expiry or (token_ends if provided else None),
        files=files,
        files_digest=digest,
        tls_identity=trust.digest(),
        namespace=selected.namespace,
        source=selected.source,
        anonymous=not authorization and certificate is None,
    )


def _token_expiry(authorization: str) -> datetime | None:
    """The ``exp`` claim of a bearer token that is a JWT (RFC 7519, 4.1.4); other tokens say nothing."""
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


def _forget_files(folder: str) -> None:
    remembered: dict[str, str] = getattr(kube_config, "_temp_files", {})
    for content in [content for content, path in remembered.items() if path.startswith(folder)]:
        del remembered[content]


def _explain(error: Exception, selected: _Selected) -> str:
    """The cause in one line and without secrets."""
    text = str(error) if not isinstance(error, KeyError) else f"missing key {error}"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    plugin = selected.user.get("exec")
    if isinstance(plugin, dict) and isinstance(error, FileNotFoundError) and plugin.get("installHint"):
        text += f" ({plugin['installHint']})"
    for secret in _secrets(selected.user):
        text = text.replace(secret, "***")
    return one_line(text or type(error).__name__, 500)


def _secrets(section: Any) -> list[str]:
    if isinstance(section, dict):
        own = [
            str(value) for name, value in section.items() if name in _SECRETS and len(str(value)) >= _SHORTEST_SECRET
        ]
        return own + [secret for value in section.values() for secret in _secrets(value)]
    if isinstance(section, list):
        return [secret for value in section for secret in _secrets(value)]
    return []
