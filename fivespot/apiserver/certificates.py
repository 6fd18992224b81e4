"""CertificateSigningRequests, as stored objects: no controller signs them."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from .builtin_strategies import StatusStrategy
from .names import subdomain_problem
from .schema.validation import format_value
from .status import FieldCause

__all__ = ["SigningRequestStrategy"]

Object = dict[str, Any]

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_LASTING: Final = ("Approved", "Denied", "Failed")
_SHORTEST_SECONDS: Final = 600
_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE( REQUEST)?-----\s")


def _invalid(field: str, value: Any, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


def _required(field: str) -> FieldCause:
    return FieldCause(field, "FieldValueRequired", "Required value")


def _unsupported(field: str, value: Any, allowed: tuple[str, ...]) -> FieldCause:
    listed = ", ".join(f'"{each}"' for each in allowed)
    words = f"Unsupported value: {format_value(value)}: supported values: {listed}"
    return FieldCause(field, "FieldValueNotSupported", words)


def _conditions(body: Object) -> dict[str, Object]:
    return {each.get("type", ""): each for each in body.get("status", {}).get("conditions") or ()}


class SigningRequestStrategy(StatusStrategy):
    """The strategy of CertificateSigningRequests: their spec never changes, and each subresource its part of status."""

    parts = ("approval",)
    selectable = ("spec.signerName",)

    def prepare_create(self, new: Object) -> None:
        new["status"] = {}
        new.setdefault("spec", {}).update(username="system:admin", groups=["system:masters", "system:authenticated"])

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        new["spec"] = old.get("spec", {})
        status, before = new.get("status", {}), old.get("status", {})
        if subresource == "approval":
            # The certificate is the signer's.
            status = {name: value for name, value in status.items() if name == "conditions"}
            status |= {name: value for name, value in before.items() if name != "conditions"}
        elif subresource != "status":
            status = before
        new["status"] = status

    def fields(self, body: Object) -> Mapping[str, str]:
        return {"spec.signerName": body.get("spec", {}).get("signerName", "")}

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        causes = [] if old is not None else _spec_problems(new.get("spec", {}))
        conditions = new.get("status", {}).get("conditions") or []
        before = _conditions(old) if old is not None else {}
        found = _conditions(new)
        for number, each in enumerate(conditions):
            path = f"status.conditions[{number}]"
            if not each.get("type"):
                causes.append(_required(f"{path}.type"))
            if not each.get("status"):
                causes.append(_required(f"{path}.status"))
            elif each.get("type") in _LASTING and each["status"] != "True":
                causes.append(_unsupported(f"{path}.status", each["status"], ("True",)))
        if {"Approved", "Denied"} <= set(found):
            words = "Approved and Denied conditions are mutually exclusive"
            causes.append(_invalid("status.conditions", "Denied", words))
        causes += [
            FieldCause(
                "status.conditions",
                "FieldValueForbidden",
                f"Forbidden: updates may not remove a condition of type {format_value(type_)}",
            )
            for type_ in _LASTING
            if type_ in before and type_ not in found
        ]
        certificate = new.get("status", {}).get("certificate")
        if certificate and not _BLOCK.match(base64.b64decode(certificate).lstrip()):
            words = "must contain at least one CERTIFICATE PEM block"
            causes.append(_invalid("status.certificate", "<certificate data>", words))
        return causes


def _spec_problems(spec: Object) -> list[FieldCause]:
    causes = []
    request = spec.get("request")
    block = _BLOCK.search(base64.b64decode(request or ""))
    if block is None or not block.group(1):
        causes.append(_invalid("spec.request", request or None, "PEM block type must be CERTIFICATE REQUEST"))
    usages = spec.get("usages") or []
    if not usages:
        causes.append(_required("spec.usages"))
    for number, usage in enumerate(usages):
        if usage not in _USAGES:
            causes.append(_unsupported(f"spec.usages[{number}]", usage, _USAGES))
        if usage in usages[:number]:
            words = f"Duplicate value: {format_value(usage)}"
            causes.append(FieldCause(f"spec.usages[{number}]", "FieldValueDuplicate", words))
    signer = spec.get("signerName", "")
    domain, _, path = signer.partition("/")
    if not signer:
        causes.append(_required("spec.signerName"))
    elif not path:
        words = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        causes.append(_invalid("spec.signerName", signer, words))
    elif problem := subdomain_problem(domain):
        causes.append(_invalid("spec.signerName", signer, f"validating label {format_value(domain)}: {problem}"))
    lifetime = spec.get("expirationSeconds")
    if lifetime is not None and lifetime < _SHORTEST_SECONDS:
        words = f"may not specify a duration less than {_SHORTEST_SECONDS} seconds (10m0s)"
        causes.append(_invalid("spec.expirationSeconds", lifetime, words))
    return causes
