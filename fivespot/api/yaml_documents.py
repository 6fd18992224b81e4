"""Reads the documents of YAML or JSON texts as kubectl does."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, Final

import yaml

from fivespot.runtime.errors import ConfigError

__all__ = ["load_documents"]

_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_MERGE: Final = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Parses YAML as kubectl does: dates and times of day are strings, and keys are unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key_node.tag != _MERGE:
                if key in seen:
                    where = key_node.start_mark
                    raise ConfigError(f"line {where.line + 1}: the key {key!r} occurs twice in one object")
                seen.add(key)
        return super().construct_mapping(node, deep)


# YAML 1.1 has 18:30 as a number in base 60 and 2027-01-01 as a date; Kubernetes' parser has neither.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in {_INT, _FLOAT, _TIMESTAMP}]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}

_Loader.add_implicit_resolver(
    _INT,
    re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)

_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9][0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


def load_documents(text: str, source: str) -> list[Any]:
    """Parse every document of a text; an empty one is None.

    :param source: its name in messages.
    :raises ConfigError: it is no YAML, a key occurs twice in one object, or it is nested too deeply.
    """
    try:
        return list(yaml.load_all(text, _Loader))
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: is no YAML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{source}: is nested too deeply") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error
