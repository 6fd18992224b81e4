"""Services, as stored objects with addresses and node ports that nothing listens on."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from .builtin_strategies import StatusStrategy
from .names import label_problem, subdomain_problem
from .schema.validation import format_value
from .status import FieldCause

__all__ = ["ServiceStrategy"]

Object = dict[str, Any]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_FIRST_PORT: Final = 30_000
_PORTS: Final = 2_768
_NETWORK: Final = ipaddress.IPv4Network("10.0.0.0/16")
_PORT_WORDS: Final = "must be between 1 and 65535, inclusive"
_ADDRESSED: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")


def _invalid(field: str, value: Any, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


def _required(field: str) -> FieldCause:
    return FieldCause(field, "FieldValueRequired", "Required value")


def _unsupported(field: str, value: Any, allowed: tuple[str, ...]) -> FieldCause:
    listed = ", ".join(f'"{each}"' for each in allowed)
    words = f"Unsupported value: {format_value(value)}: supported values: {listed}"
    return FieldCause(field, "FieldValueNotSupported", words)


class ServiceStrategy(StatusStrategy):
    """The strategy of Services; gives each a free address, and node ports where its type has them."""

    label_names = True
    returns_deleted = True
    selectable = ("spec.clusterIP", "spec.type")

    def __init__(self) -> None:
        self._given = 0
        self._ports = 0
        self._taken: set[str] = set()

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        if spec["sessionAffinity"] == "ClientIP":
            spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10_800}})
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if port.get("targetPort") in {None, 0, ""}:
                port["targetPort"] = port.get("port", 0)
        if spec["type"] in {"NodePort", "LoadBalancer"}:
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")

    def prepare_create(self, new: Object) -> None:
        new["status"] = {"loadBalancer": {}}
        self._allocate(new["spec"])

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        spec, before = new.get("spec", {}), old.get("spec", {})
        if subresource == "status" or spec["type"] == "ExternalName":
            return
        if before.get("type") != "ExternalName":
            for name in _ADDRESSED:
                if not spec.get(name) and name in before:
                    spec[name] = before[name]
            if spec.get("clusterIP") and spec["clusterIP"] != before.get("clusterIP"):
                spec["clusterIPs"] = [spec["clusterIP"]]
        known = {port.get("name", ""): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and known.get(port.get("name", "")) and spec["type"] != "ClusterIP":
                port["nodePort"] = known[port.get("name", "")]
        self._allocate(spec)

    def _allocate(self, spec: Object) -> None:
        if spec["type"] not in _TYPES or spec["type"] == "ExternalName":
            return
        if spec.get("clusterIPs") and not spec.get("clusterIP"):
            spec["clusterIP"] = spec["clusterIPs"][0]
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._address()
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        self._taken.add(spec["clusterIP"])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        if spec["type"] == "NodePort" or (spec["type"] == "LoadBalancer" and spec["allocateLoadBalancerNodePorts"]):
            for port in spec.get("ports") or ():
                if not port.get("nodePort"):
                    port["nodePort"] = _FIRST_PORT + self._ports % _PORTS
                    self._ports += 1

    def _address(self) -> str:
        while True:
            self._given += 1
            address = str(_NETWORK[self._given % (_NETWORK.num_addresses - 2) + 1])
            if address not in self._taken:
                return address

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        spec = new["spec"]
        causes = []
        ports = spec.get("ports") or []
        if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
            causes.append(_required("spec.ports"))
        causes += _port_problems(ports)
        if spec["type"] not in _TYPES:
            causes.append(_unsupported("spec.type", spec["type"], _TYPES))
        if spec["type"] == "ExternalName":
            name = spec.get("externalName", "")
            if not name:
                causes.append(_required("spec.externalName"))
            elif problem := subdomain_problem(name.removesuffix(".")):
                causes.append(_invalid("spec.externalName", name, problem))
        if spec["sessionAffinity"] not in {"None", "ClientIP"}:
            causes.append(_unsupported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None")))
        causes += _address_problems(spec, old)
        return causes

    def fields(self, body: Object) -> dict[str, str]:
        spec = body.get("spec", {})
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _port_problems(ports: list[Object]) -> list[FieldCause]:
    causes = []
    names: set[str] = set()
    used: set[tuple[str, int]] = set()
    for number, port in enumerate(ports):
        path, name, value = f"spec.ports[{number}]", port.get("name", ""), port.get("port", 0)
        if not name and len(ports) > 1:
            causes.append(_required(f"{path}.name"))
        elif name and (problem := label_problem(name)):
            causes.append(_invalid(f"{path}.name", name, problem))
        elif name in names and name:
            words = f"Duplicate value: {format_value(name)}"
            causes.append(FieldCause(f"{path}.name", "FieldValueDuplicate", words))
        names.add(name)
        if not 1 <= value <= 65_535:
            causes.append(_invalid(f"{path}.port", value, _PORT_WORDS))
        if port["protocol"] not in _PROTOCOLS:
            causes.append(_unsupported(f"{path}.protocol", port["protocol"], _PROTOCOLS))
        if isinstance(port["targetPort"], int) and not 1 <= port["targetPort"] <= 65_535:
            causes.append(_invalid(f"{path}.targetPort", port["targetPort"], _PORT_WORDS))
        if (port["protocol"], value) in used:
            shown = {"protocol": port["protocol"], "port": value}
            words = f"Duplicate value: {format_value(shown)}"
            causes.append(FieldCause(path, "FieldValueDuplicate", words))
        used.add((port["protocol"], value))
    return causes


def _address_problems(spec: Object, old: Object | None) -> list[FieldCause]:
    address = spec.get("clusterIP", "")
    if address and address != "None":
        try:
            ipaddress.ip_address(address)
        except ValueError:
            words = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            return [_invalid("spec.clusterIPs[0]", address, words)]
    before = old["spec"] if old is not None else {}
    kept = "ExternalName" not in {spec["type"], before.get("type", "ExternalName")}
    if kept and before.get("clusterIP") and before["clusterIP"] != address:
        return [_invalid("spec.clusterIPs[0]", [address], "may not change once set")]
    return []
