"""A tool: a contract, and the function that fulfils it.

`tool` makes one from a typed function, `define_tool` from a raw wire definition. A tool does not check who
calls it: only `ptc_tools.invoke` may run one on behalf of a model or a program.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Generic, ParamSpec, TypeVar, cast, overload

from ptc_tools.call import CallerKind, JsonObject, JsonValue
from ptc_tools.context import ToolContext
from ptc_tools.contract import Approval, Contract, Effects, RiskLevel
from ptc_tools.docstrings import summary
from ptc_tools.errors import InvalidSignature, RegistrationError
from ptc_tools.parameters import Parameters, name_of, read_parameters, type_hints
from ptc_tools.results import PLAIN, PlainResult, TypedResult, read_result
from ptc_tools.schema import SchemaValidator
from ptc_tools.threads import run_in_thread

P = ParamSpec("P")
R = TypeVar("R")


class Tool(Generic[P, R]):
    """A registered tool. Call it like the function it was made from; `run` is for the invoker and for tests.

    `check_arguments` and `check_result` are compiled validators of the contract's schemas.
    """

    __slots__ = (
        "__wrapped__",
        "_is_async",
        "_parameters",
        "_result",
        "check_arguments",
        "check_result",
        "contract",
        "function",
        "takes_context",
    )

    def __init__(
        self,
        contract: Contract,
        function: Callable[P, R],
        *,
        parameters: Parameters | None = None,
        result: TypedResult | PlainResult | None = None,
    ) -> None:
        what = f"tool {contract.qualified_name!r}"
        self.contract = contract
        self.function = function
        self.__wrapped__ = function
        self._parameters = parameters
        self._result = result or PLAIN
        self._is_async = _is_async(function)
        if parameters is not None:
            self.takes_context = parameters.context
        else:
            self.takes_context = _context_parameter(function)
        # Typed decoding judges formats itself, as the types mean them; a raw schema is all there is.
        self.check_arguments = SchemaValidator(
            contract.checked_parameters, f"{what}: parameters", formats=parameters is None
        )
        self.check_result = (
            None
            if contract.output_schema is None
            else SchemaValidator(contract.output_schema, f"{what}: output_schema")
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: no checks, no record. For the application's own code and its tests."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.contract.qualified_name}>"

    def decode(self, arguments: JsonObject) -> dict[str, object]:
        """Keyword arguments of the declared types from arguments that fit the schema. Raises `ValueError`."""
        if self._parameters is None:
            return dict(arguments)
        return self._parameters.decode(arguments)

    async def call(self, keywords: dict[str, object], context: ToolContext) -> object:
        """Run the function with decoded arguments: on the event loop if async, else in a pool thread."""
        if self.takes_context is not None:
            keywords[self.takes_context] = context
        function = cast("Callable[..., object]", self.function)
        if self._is_async:
            return await cast("Awaitable[object]", function(**keywords))
        value = await run_in_thread(functools.partial(function, **keywords))
        return await value if inspect.isawaitable(value) else value

    def encode(self, value: object, max_bytes: int) -> JsonValue:
        """Fresh JSON for what the function returned. Raises `ValueError` if there is none, or too much."""
        return self._result.encode(value, max_bytes)

    async def run(self, arguments: JsonObject, context: ToolContext) -> object:
        """Decode, then run. The arguments must fit the schema; who calls is not asked here."""
        return await self.call(self.decode(arguments), context)


AnyTool = Tool[..., object]


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = ...,
    namespace: str | None = ...,
    description: str | None = ...,
    allowed_callers: Iterable[CallerKind] = ...,
    strict: bool = ...,
    output_schema: Mapping[str, JsonValue] | None = ...,
    timeout: float | None = ...,
    defer_loading: bool = ...,
    effects: Effects | None = ...,
    risk_level: RiskLevel | None = ...,
    approval: Approval = ...,
    tags: Iterable[str] = ...,
    version: str | None = ...,
) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = ...,
    namespace: str | None = ...,
    description: str | None = ...,
    allowed_callers: Iterable[CallerKind] = ...,
    strict: bool = ...,
    output_schema: Mapping[str, JsonValue] | None = ...,
    timeout: float | None = ...,
    defer_loading: bool = ...,
    effects: Effects | None = ...,
    risk_level: RiskLevel | None = ...,
    approval: Approval = ...,
    tags: Iterable[str] = ...,
    version: str | None = ...,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    namespace: str | None = None,
    description: str | None = None,
    allowed_callers: Iterable[CallerKind] = ("direct",),
    strict: bool = True,
    output_schema: Mapping[str, JsonValue] | None = None,
    timeout: float | None = None,
    defer_loading: bool = False,
    effects: Effects | None = None,
    risk_level: RiskLevel | None = None,
    approval: Approval = "never",
    tags: Iterable[str] = (),
    version: str | None = None,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool from a typed function: bare, with options, or called on a method or a partial.

    Name, description and schemas come from the function's name, docstring and annotations unless given here.
    A parameter of type `ToolContext` is filled in by the host. Raises `RegistrationError`: `InvalidName`,
    `InvalidSchema` (strict mode cannot express a type; `strict=False` can) or `InvalidSignature`.
    """
    names = _Locals(sys._getframe(1))

    def register(target: Callable[P, R]) -> Tool[P, R]:
        if isinstance(target, Tool):
            raise RegistrationError(f"{target!r} is a tool already")
        if not callable(target):
            raise InvalidSignature(f"a tool is made from a function, not from {type(target).__name__}")
        tool_name = name if name is not None else name_of(target)
        what = f"tool {tool_name!r}"
        hints = names.hints(target)
        parameters = read_parameters(target, hints, strict=strict, what=what)
        result = read_result(hints, what)
        output = result.schema if output_schema is None else dict(output_schema)
        callers = allowed_callers if isinstance(allowed_callers, str) else tuple(allowed_callers)
        if output is None and "programmatic" in callers:
            raise InvalidSignature(
                f"{what}: programs must know what it returns; annotate the return type, or give output_schema"
            )
        contract = Contract(
            name=tool_name,
            namespace=namespace,
            description=summary(target) if description is None else description,
            parameters=parameters.schema,
            accepted=parameters.accepted,
            output_schema=output,
            allowed_callers=cast("tuple[CallerKind, ...]", callers),
            strict=strict,
            timeout=timeout,
            defer_loading=defer_loading,
            effects=effects,
            risk_level=risk_level,
            approval=approval,
            tags=tuple(tags),
            version=version,
            generated=output_schema is None,
        )
        return Tool(contract, target, parameters=parameters, result=result)

    return register if function is None else register(function)


def define_tool(
    definition: Mapping[str, JsonValue],
    function: Callable[..., object],
    *,
    namespace: str | None = None,
    timeout: float | None = None,
    effects: Effects | None = None,
    risk_level: RiskLevel | None = None,
    approval: Approval = "never",
    tags: Iterable[str] = (),
    version: str | None = None,
) -> AnyTool:
    """Make a tool from a raw function-tool definition and the function that answers it.

    The definition goes over the wire unchanged. The function gets the arguments by keyword, plus the context
    where it has a parameter annotated `ToolContext`, and returns JSON. Raises `RegistrationError`.
    """
    if definition.get("type", "function") != "function":
        raise RegistrationError(f"only function tools run here, not {definition.get('type')!r}")
    if not callable(function):
        raise InvalidSignature(f"a tool is made from a function, not from {type(function).__name__}")
    parameters = definition.get("parameters")
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    contract = Contract(
        name=cast("str", definition.get("name")),
        namespace=namespace,
        description=cast("str", definition.get("description") or ""),
        parameters=cast("JsonObject", parameters),
        output_schema=cast("JsonObject | None", definition.get("output_schema")),
        allowed_callers=cast("tuple[CallerKind, ...]", definition.get("allowed_callers") or ("direct",)),
        strict=definition.get("strict") is True,
        timeout=timeout,
        defer_loading=definition.get("defer_loading") is True,
        definition={"type": "function", **definition},
        effects=effects,
        risk_level=risk_level,
        approval=approval,
        tags=tuple(tags),
        version=version,
    )
    return Tool(contract, function)


class _Locals:
    """The names around a decorated function, looked at only if an annotation needs them."""

    def __init__(self, frame: object) -> None:
        self._frame = frame

    def hints(self, function: Callable[..., object]) -> dict[str, object]:
        try:
            return type_hints(function, None)
        except InvalidSignature:
            names = getattr(self._frame, "f_locals", None)
            return type_hints(function, names)


def _is_async(function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or (
        not inspect.isroutine(function) and inspect.iscoroutinefunction(type(function).__call__)
    )


def _context_parameter(function: Callable[..., object]) -> str | None:
    """The parameter of a raw tool's function that takes the context, if it has one."""
    try:
        hints = type_hints(function, None)
    except InvalidSignature:
        return None
    return next((name for name, hint in hints.items() if hint is ToolContext and name != "return"), None)
