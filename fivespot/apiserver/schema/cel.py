"""Adapter to the CEL library: environments, compiled expressions."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from .cel_library import FUNCTIONS

__all__ = ["CelError", "Program", "compile_expression"]

_TYPES: Final = {"string": "STRING", "integer": "INT", "number": "DOUBLE", "boolean": "BOOL"}
_OPTIONAL_OLD: Final = "cel.bind(oldSelf, size(before) == 0 ? optional.none() : optional.of(before[0]), {})"
"""The library takes no optional as a variable, so one is made from a list of at most one value."""
_COMPLAINTS: Final = ("INVALID_ARGUMENT: ", " [INVALID_ARGUMENT]", "NOT_FOUND: ", "UNKNOWN: ")


class CelError(Exception):
    """An expression cannot be compiled or evaluated."""


class Program:
    """A compiled expression."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    @property
    def type(self) -> str:
        """The name of the type of the result, such as BOOL."""
        return str(self._compiled.return_type().name())

    def evaluate(self, own: Any, *old: Any) -> Any:
        """The result for ``self`` and, where there was something before, ``oldSelf``.

        :raises CelError: the evaluation fails.
        """
        try:
            result = self._compiled.eval(data={"self": own, "oldSelf": old[0] if old else None, "before": list(old)})
            if result.type().name() == "ERROR":
                raise CelError(_words(result.value()))
            return result.plain_value()
        except (RuntimeError, TypeError, ValueError) as error:
            raise CelError(_words(error)) from None


def _words(error: object) -> str:
    text = str(error).strip()
    for noise in _COMPLAINTS:
        text = text.replace(noise, "")
    return (
        text.replace("Key not found in map : ", "no such key: ").replace('no such key: "', "no such key: ").strip('"')
    )


def compile_expression(
    expression: str, own: str, *, optional_old: bool = False, variables: tuple[tuple[str, str], ...] = ()
) -> Program:
    """Compile an expression.

    :param own: the schema type of ``self``; "" when it is dynamic.
    :param optional_old: ``oldSelf`` is an optional.
    :param variables: more variables with their types, such as ``STRING``, ``list INT`` and "" for a dynamic one.
    :raises CelError: it is invalid.
    """
    try:
        text = _OPTIONAL_OLD.format(expression) if optional_old else expression
        return Program(_environment(own, variables).compile(text))
    except (RuntimeError, ValueError, TypeError) as error:
        raise CelError(_words(error)) from None


@lru_cache(maxsize=32)
def _environment(own: str, more: tuple[tuple[str, str], ...] = ()) -> Any:
    try:
        cel = import_module("cel_expr_python.cel")
    except ModuleNotFoundError as error:
        raise CelError("rules need the library cel-expr-python: pip install 'fivespot[testing]'") from error
    kinds = cel.Type
    if own in _TYPES:
        this = getattr(kinds, _TYPES[own])
    elif own == "array":
        this = kinds.List(kinds.DYN)
    elif own == "object":
        this = kinds.Map(kinds.STRING, kinds.DYN)
    else:
        this = kinds.DYN
    extensions = [
        import_module("cel_expr_python.ext.ext_strings").ExtStrings(),
        import_module("cel_expr_python.ext.ext_math").ExtMath(),
        import_module("cel_expr_python.ext.ext_optional").ExtOptional(),
        import_module("cel_expr_python.ext.ext_bindings").ExtBindings(),
        cel.CelExtension("kubernetes", _declarations(cel)),
    ]
    variables = {"self": this, "oldSelf": this, "before": kinds.List(kinds.DYN)}
    variables |= {name: _type_of(kinds, text) for name, text in more}
    return cel.NewEnv(variables=variables, extensions=extensions)


def _type_of(kinds: Any, text: str) -> Any:
    first, _, rest = text.partition(" ")
    if first == "list":
        return kinds.List(_type_of(kinds, rest))
    if first == "map":
        return kinds.Map(kinds.STRING, _type_of(kinds, rest))
    return getattr(kinds, first) if first and first != "optional" else kinds.DYN


def _declarations(cel: Any) -> list[Any]:
    declared: dict[str, list[Any]] = {}
    for number, function in enumerate(FUNCTIONS):
        overload = cel.Overload(
            f"kubernetes_{function.name}_{number}",
            getattr(cel.Type, function.returns),
            [getattr(cel.Type, name) for name in function.takes],
            function.member,
            function.call,
        )
        declared.setdefault(function.name, []).append(overload)
    return [cel.FunctionDecl(name, overloads) for name, overloads in declared.items()]
