"""TLS contexts and certificate dates."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.client.tls import client_context, not_after
from fivespot.runtime.errors import ConfigError


@pytest.mark.parametrize("when", [datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC), datetime(2061, 1, 2, tzinfo=UTC)])
def test_the_end_of_a_certificate_is_read_in_both_of_its_forms(when: datetime) -> None:
    """RFC 5280, 4.1.2.5: UTCTime through 2049, GeneralizedTime from 2050."""
    issued = trustme.CA().issue_cert("x.example", not_after=when)
    assert not_after(issued.cert_chain_pems[0].bytes()) == when


@given(st.binary(max_size=60))
def test_the_end_of_garbage_is_unknown(garbage: bytes) -> None:
    assert not_after(garbage) is None
    assert not_after(ssl.DER_cert_to_PEM_cert(garbage).encode()) is None


def test_unusable_files_are_named_with_their_cause(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("hello")
    with pytest.raises(ConfigError, match=r"garbage.pem: no usable CA certificate: "):
        client_context(ca=garbage)
    with pytest.raises(ConfigError, match=r"absent.pem: no usable CA certificate: No such file"):
        client_context(ca=tmp_path / "absent.pem")
    with pytest.raises(ConfigError, match=r"garbage.pem with key .*: no usable client certificate: "):
        client_context(ca=None, certificate=garbage, key=garbage)


def test_strict_checks_that_many_cluster_cas_fail_are_off(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(ca)
    context = client_context(ca=ca)
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_verification_can_be_turned_off() -> None:
    context = client_context(ca=None, verify=False)
    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname
