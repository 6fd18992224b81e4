"""Selection of the HTTP proxy for a server."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from fivespot.runtime.errors import ConfigError

__all__ = ["check_proxy", "is_local", "proxy_from_environment"]


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> str:
    """Select the proxy for a server by ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``; "" for none.

    The variables are read as Go reads them, and so as kubectl does: upper case takes precedence, ``NO_PROXY`` may
    contain networks in CIDR notation, and loopback addresses are never proxied.

    :raises ConfigError: the variable's value cannot be used.
    """
    url = urlsplit(server)
    host = (url.hostname or "").lower()
    name = "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY"
    proxy = _variable(environ, name)
    if not proxy or is_local(host) or _is_excepted(host, url.port, _variable(environ, "NO_PROXY")):
        return ""
    return check_proxy(proxy if "://" in proxy else f"http://{proxy}", name)


def check_proxy(proxy: str, source: str) -> str:
    """Validate the URL of a proxy, and return it.

    :raises ConfigError: it cannot be used; the message does not repeat it, because it may contain a password.
    """
    try:
        url = urlsplit(proxy)
        if url.scheme.startswith("socks"):
            raise ConfigError(f"{source}: SOCKS proxies are not supported, only http:// and https:// ones")
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{source}: the proxy must be an http:// or https:// URL")
    return proxy


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.lower()) or "").strip()


def is_local(host: str) -> bool:
    """Whether a host is this computer: ``localhost``, or a loopback address."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excepted(host: str, port: int | None, exceptions: str) -> bool:
    address = _address(host)
    for entry in exceptions.lower().replace(" ", ",").split(","):
        name, _, entry_port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
        if entry_port and entry_port != str(port):
            continue
        name = name.strip("[]")
        if name == "*":
            return True
        if address is not None:
            network = _network(name)
            if network is not None and address in network:
                return True
        elif name:
            suffix = name.removeprefix("*").lstrip(".")
            if host.endswith(f".{suffix}") or (host == suffix and not name.startswith((".", "*"))):
                return True
    return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
