"""The choice of a proxy for a server."""

from __future__ import annotations

import pytest

from fivespot.runtime.client.proxy import check_proxy, proxy_from_environment
from fivespot.runtime.errors import ConfigError

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://api.example", {}, ""),
        ("https://api.example", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example", {"https_proxy": PROXY}, PROXY),
        ("https://api.example", {"HTTP_PROXY": PROXY}, ""),
        ("http://api.example", {"HTTP_PROXY": "proxy:3128"}, PROXY),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://10.96.0.1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "x, 10.0.0.0/8"}, ""),
        ("https://10.96.0.1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.96.0.1"}, ""),
        ("https://10.96.0.1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "192.168.0.0/16"}, PROXY),
        ("https://[fd00::1]:443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "fd00::/8"}, ""),
        ("https://api.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, ""),
        ("https://api.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example"}, ""),
        ("https://api.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*.example"}, ""),
        ("https://example", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example"}, PROXY),
        ("https://example", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, ""),
        ("https://myexample", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, PROXY),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:6443"}, ""),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:443"}, PROXY),
        ("https://api.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        ("https://api.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": ",,"}, PROXY),
    ],
)
def test_the_environment_is_read_like_kubectl_reads_it(server: str, environ: dict[str, str], expected: str) -> None:
    assert proxy_from_environment(server, environ) == expected


@pytest.mark.parametrize("proxy", ["socks5://user:hunter2@proxy:1080", "http://", "http://[", "http://p:99999999"])
def test_an_unusable_proxy_is_an_error_that_does_not_repeat_it(proxy: str) -> None:
    with pytest.raises(ConfigError, match=r"proxy-url: (the proxy must be an http|SOCKS proxies are not)") as caught:
        check_proxy(proxy, "proxy-url")
    assert "hunter2" not in str(caught.value)
