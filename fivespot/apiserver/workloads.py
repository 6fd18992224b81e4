"""Deployments and ReplicaSets, as stored objects: no controller makes pods of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .builtin_strategies import StatusStrategy
from .names import label_problem, qualified_problem, value_problem
from .schema.validation import format_value
from .status import FieldCause

__all__ = [
    "DeploymentStrategy",
    "ReplicaSetStrategy",
    "selector_matches",
    "selector_problems",
    "selector_text",
    "template_defaults",
]

Object = dict[str, Any]

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def _invalid(field: str, value: Any, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


def _required(field: str) -> FieldCause:
    return FieldCause(field, "FieldValueRequired", "Required value")


def _unsupported(field: str, value: Any, allowed: tuple[str, ...]) -> FieldCause:
    listed = ", ".join(f'"{each}"' for each in allowed)
    words = f"Unsupported value: {format_value(value)}: supported values: {listed}"
    return FieldCause(field, "FieldValueNotSupported", words)


def template_defaults(template: Object) -> None:
    """Set the defaults of the pods in a template."""
    spec = template.setdefault("spec", {})
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            image = container.get("image", "")
            tag = image.rpartition("/")[2].partition(":")[2]
            latest = "@" not in image and tag in {"", "latest"}
            container.setdefault("resources", {})
            container.setdefault("terminationMessagePath", "/dev/termination-log")
            container.setdefault("terminationMessagePolicy", "File")
            container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
            for port in container.get("ports") or ():
                if isinstance(port, dict):
                    port.setdefault("protocol", "TCP")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")


def selector_text(selector: Any) -> str:
    """A LabelSelector as the text of a label selector, as the status of a Scale has it."""
    if not isinstance(selector, dict):
        return ""
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, operator, values = each.get("key", ""), each.get("operator", ""), sorted(each.get("values") or ())
        listed = f"({','.join(values)})"
        shown = {
            "In": f"{key} in {listed}", "NotIn": f"{key} notin {listed}", "Exists": key, "DoesNotExist": f"!{key}",
        }  # fmt: skip
        parts.append((key, shown.get(operator, key)))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def selector_matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector selects an object with these labels; an empty one selects all."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for each in selector.get("matchExpressions") or ():
        key, values = each.get("key"), each.get("values") or ()
        holds = {
            "In": key in labels and labels[key] in values,
            "NotIn": key not in labels or labels[key] not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not holds.get(each.get("operator"), False):
            return False
    return True


def selector_problems(selector: Object, path: str) -> list[FieldCause]:
    """Validate a LabelSelector."""
    causes = []
    for key, value in (selector.get("matchLabels") or {}).items():
        if problem := qualified_problem(key):
            causes.append(_invalid(f"{path}.matchLabels", key, problem))
        if problem := value_problem(value):
            causes.append(_invalid(f"{path}.matchLabels", value, problem))
    for number, each in enumerate(selector.get("matchExpressions") or ()):
        at, operator, values = f"{path}.matchExpressions[{number}]", each.get("operator", ""), each.get("values")
        if operator in {"In", "NotIn"} and not values:
            words = "must be specified when `operator` is 'In' or 'NotIn'"
            causes.append(FieldCause(f"{at}.values", "FieldValueRequired", f"Required value: {words}"))
        elif operator in {"Exists", "DoesNotExist"} and values:
            words = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(FieldCause(f"{at}.values", "FieldValueForbidden", words))
        elif operator not in _OPERATORS:
            causes.append(_invalid(f"{at}.operator", operator, "not a valid selector operator"))
        if problem := qualified_problem(each.get("key", "")):
            causes.append(_invalid(f"{at}.key", each.get("key", ""), problem))
    return causes


def _template_problems(template: Object, selector: Any, path: str) -> list[FieldCause]:
    labels = (template.get("metadata") or {}).get("labels")
    causes = []
    # A missing selector matches nothing; an empty and an invalid one are errors of their own.
    valid = bool(selector) and not selector_problems(selector, "")
    if selector is None or (valid and not selector_matches(selector, labels or {})):
        words = "`selector` does not match template `labels`"
        causes.append(_invalid(f"{path}.metadata.labels", labels or None, words))
    spec = template.get("spec") or {}
    if not spec.get("containers"):
        causes.append(_required(f"{path}.spec.containers"))
    for number, container in enumerate(spec.get("containers") or ()):
        at = f"{path}.spec.containers[{number}]"
        name = container.get("name", "")
        if not name:
            causes.append(_required(f"{at}.name"))
        elif problem := label_problem(name):
            causes.append(_invalid(f"{at}.name", name, problem))
        if not container.get("image"):
            causes.append(_required(f"{at}.image"))
    if spec.get("restartPolicy") != "Always":
        causes.append(_unsupported(f"{path}.spec.restartPolicy", spec.get("restartPolicy"), ("Always",)))
    return causes


class ReplicaSetStrategy(StatusStrategy):
    """The strategy of ReplicaSets."""

    word = "replicaset"
    selectable: tuple[str, ...] = ("status.replicas",)

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        template_defaults(spec.setdefault("template", {}))

    def prepare_create(self, new: Object) -> None:
        new["status"] = {"replicas": 0}

    def fields(self, body: Object) -> Mapping[str, str]:
        return {"status.replicas": str(body.get("status", {}).get("replicas", 0))}

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        spec, selector = new["spec"], new["spec"].get("selector")
        causes = []
        if spec["replicas"] < 0:
            causes.append(_invalid("spec.replicas", spec["replicas"], _NOT_NEGATIVE))
        if selector is None:
            causes.append(_required("spec.selector"))
        elif not selector:
            causes.append(_invalid("spec.selector", selector, f"empty selector is invalid for {self.word}"))
        elif problems := selector_problems(selector, "spec.selector"):
            causes += [*problems, _invalid("spec.selector", selector, "invalid label selector")]
        causes += _template_problems(spec["template"], selector, "spec.template")
        causes += self._more_problems(spec)
        if old is not None and old["spec"].get("selector") != selector:
            causes.append(_invalid("spec.selector", selector, "field is immutable"))
        return causes

    def _more_problems(self, spec: Object) -> list[FieldCause]:
        ready = spec.get("minReadySeconds", 0)
        return [_invalid("spec.minReadySeconds", ready, _NOT_NEGATIVE)] if ready < 0 else []


class DeploymentStrategy(ReplicaSetStrategy):
    """The strategy of Deployments."""

    word = "deployment"
    selectable = ()

    def default(self, new: Object) -> None:
        super().default(new)
        spec = new["spec"]
        strategy = spec.setdefault("strategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def prepare_create(self, new: Object) -> None:
        new["status"] = {}

    def fields(self, body: Object) -> Mapping[str, str]:
        return {}

    def _more_problems(self, spec: Object) -> list[FieldCause]:
        strategy = spec["strategy"]
        rolling = strategy.get("rollingUpdate")
        causes = []
        if strategy["type"] not in {"Recreate", "RollingUpdate"}:
            shown = {"Type": strategy["type"], "RollingUpdate": rolling}
            causes.append(_unsupported("spec.strategy", shown, ("Recreate", "RollingUpdate")))
        elif strategy["type"] == "Recreate" and rolling is not None:
            words = "Forbidden: may not be specified when strategy `type` is 'Recreate'"
            causes.append(FieldCause("spec.strategy.rollingUpdate", "FieldValueForbidden", words))
        elif rolling is not None and all(rolling.get(name) in {0, "0%"} for name in ("maxSurge", "maxUnavailable")):
            field = "spec.strategy.rollingUpdate.maxUnavailable"
            causes.append(_invalid(field, rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"))
        causes += super()._more_problems(spec)
        limit, deadline = spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]
        if limit < 0:
            causes.append(_invalid("spec.revisionHistoryLimit", limit, _NOT_NEGATIVE))
        if deadline < 0:
            causes.append(_invalid("spec.progressDeadlineSeconds", deadline, _NOT_NEGATIVE))
        elif deadline <= spec.get("minReadySeconds", 0):
            causes.append(_invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return causes
