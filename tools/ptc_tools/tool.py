"""A tool: a contract, and the function that fulfils it.

`tool` makes one from a typed function, `define_tool` from a raw wire definition. A tool does not check who
calls it: only `ptc_tools.invoke` may run one on behalf of a model or a program.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import CoroutineType, MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from typing_extensions import Unpack

from ptc_tools.call import CallerKind, JsonObject, JsonValue
from ptc_tools.context import ToolContext
from ptc_tools.contract import BY_GENERATOR, UNBOUNDED, Contract
from ptc_tools.docstrings import summary
from ptc_tools.errors import InvalidSignature, RegistrationError
from ptc_tools.hidden import secrets_of
from ptc_tools.injected import Locals, injected
from ptc_tools.integers import with_integers
from ptc_tools.options import ContractOptions, ToolOptions, check_kinds, declared_by
from ptc_tools.parameters import DesignerField, Parameters, bound_values, name_of, read_parameters
from ptc_tools.results import PLAIN, Codec, read_result
from ptc_tools.schema import SchemaValidator
from ptc_tools.strict_json import dumps
from ptc_tools.threads import run_in_thread
from ptc_tools.written import TYPED_FORMATS

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Tool(Generic[P, R_co]):
    """A registered tool. Call it like the function it was made from; `run` is for the invoker and tests.

    `check_arguments` and `check_result` are compiled validators of the contract's schemas. `designer` maps
    the parameters that a designer sets to their types; `bound` are those that a `functools.partial` sets. `kept`
    are the values of both, and `secrets` the credentials in them: for the tool alone. `withheld` names what no
    call may give.
    """

    __slots__ = (
        "__wrapped__",
        "_designed",
        "_is_async",
        "_parameters",
        "bound",
        "check_arguments",
        "check_result",
        "codec",
        "contract",
        "designer",
        "function",
        "kept",
        "secrets",
        "takes_context",
        "withheld",
    )

    def __init__(
        self,
        contract: Contract,
        function: Callable[P, R_co],
        *,
        parameters: Parameters | None = None,
        codec: Codec = PLAIN,
        names: Locals | None = None,
    ) -> None:
        what = f"tool {contract.qualified_name!r}"
        self.contract = contract
        self.function = function
        self.__wrapped__ = function
        self._parameters = parameters
        self.codec = codec
        self._designed: Mapping[str, object] = MappingProxyType({})
        self._is_async = _is_async(function)
        self.bound = frozenset(bound_values(function))
        self.designer: Mapping[str, DesignerField]
        if parameters is not None:
            self.takes_context, self.designer = parameters.context, parameters.designer
        else:
            self.takes_context, self.designer = injected(contract, function, what, names)
        context = () if self.takes_context is None else (self.takes_context,)
        self.withheld = frozenset({*self.designer, *self.bound, *context})
        self._keep()
        evidence = contract.idempotency
        if evidence is not None and evidence.source == "protocol" and self.takes_context is None:
            raise RegistrationError(
                f"{what}: idempotency by the protocol needs ctx.idempotency_key: take a ptc.ToolContext"
            )
        if evidence is not None and evidence.parameter is not None:
            required = contract.checked_parameters.get("required")
            if not isinstance(required, list) or evidence.parameter not in required:
                raise RegistrationError(
                    f"{what}: idempotency by {evidence.parameter!r} needs that parameter in every call: require it"
                )
        contract.bounds.check(contract.checked_parameters, what)
        if contract.reconciliation is not None:
            contract.reconciliation.check(contract.checked_parameters, what)
        # Typed decoding judges formats itself, as the types mean them, in one form; a raw schema is all there is.
        self.check_arguments = SchemaValidator(
            contract.checked_parameters,
            f"{what}: parameters",
            formats=True if parameters is None else TYPED_FORMATS,
        )
        self.check_result = (
            None
            if contract.output_schema is None
            else SchemaValidator(contract.output_schema, f"{what}: output_schema")
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself: no checks, no record. For the application's own code and its tests."""
        if self._designed:
            return self.function(*args, **{**self._designed, **kwargs})  # type: ignore[arg-type]
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.contract.qualified_name}>"

    def configure(self, **values: object) -> Tool[P, R_co]:
        """A tool with these designer values set; this one is unchanged.

        Raises `RegistrationError` for a name that is no designer parameter, or a value of another type.
        """
        for name, value in values.items():
            if name not in self.designer:
                known = ", ".join(self.designer) or "it has none"
                raise RegistrationError(f"{self!r} has no designer parameter {name!r} (known: {known})")
            if not self.designer[name].fits(value):
                # The value stays out of the message, and what quotes it out of its context: it may be a credential.
                raise RegistrationError(f"{self!r}: the value for {name!r} is not of its declared type")
        configured = object.__new__(type(self))
        for slot in Tool.__slots__:
            setattr(configured, slot, getattr(self, slot))
        configured._designed = MappingProxyType({**self._designed, **values})
        configured._keep()
        return configured

    def _keep(self) -> None:
        """Look for what the designer and a partial set, defaults too, when it is set: not in each call."""
        kept = {name: field.default for name, field in self.designer.items() if not field.required}
        kept = {**kept, **bound_values(self.function), **self._designed}
        self.kept: Mapping[str, object] = MappingProxyType(kept)
        self.secrets = tuple(text for value in kept.values() for text in secrets_of(value))

    @property
    def unset(self) -> tuple[str, ...]:
        """Designer parameters that have neither a value nor a default: the tool cannot run yet."""
        return tuple(
            name for name, field in self.designer.items() if field.required and name not in self._designed
        )

    @property
    def designed(self) -> Mapping[str, object]:
        """The designer's values. They are for the tool alone: never for a model, a program or a record."""
        return self._designed

    def decode(self, arguments: JsonObject) -> dict[str, object]:
        """Keyword arguments of the declared types from arguments that fit the schema. Raises `ValueError`."""
        if self._parameters is None:
            return dict(with_integers(arguments, self.contract.parameters))
        return self._parameters.decode(arguments)

    def call(self, keywords: dict[str, object], context: ToolContext | None) -> Coroutine[Any, Any, object]:
        """The function's run with decoded arguments: on the event loop if async, else in a pool thread.

        `context` may be None for a tool that does not take one (`takes_context`).
        """
        if self._designed:
            keywords.update(self._designed)
        if self.takes_context is not None:
            keywords[self.takes_context] = context
        function: Callable[..., Any] = self.function
        if not self._is_async:
            return _off_the_loop(functools.partial(function, **keywords))
        step = function(**keywords)
        return step if type(step) is CoroutineType else _awaited(step)

    async def run(self, arguments: JsonObject, context: ToolContext) -> object:
        """Decode, then run. The arguments must fit the schema; who calls is not asked here."""
        return await self.call(self.decode(arguments), context)


AnyTool = Tool[..., object]


@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool from a typed function: bare, with options, or called on a method or a partial.

    Name, description and schemas come from the function's name, docstring and annotations unless `options`
    (`ToolOptions`) say otherwise. A parameter of type `ToolContext` is filled in by the host, one marked
    `Designer` by `Tool.configure`. Raises `RegistrationError`: `InvalidName`, `InvalidSchema` (strict mode
    cannot express a type; `strict=False` can) or `InvalidSignature`.
    """
    names = Locals(sys._getframe(1))
    if unknown := set(options) - ToolOptions.__annotations__.keys():
        raise TypeError(f"tool() has no option {sorted(unknown)[0]!r}")

    def register(target: Callable[P, R]) -> Tool[P, R]:
        return typed_tool(target, names, options)

    return register if function is None else register(function)


def typed_tool(function: Callable[P, R], names: Locals, options: ToolOptions) -> Tool[P, R]:
    """`tool` for who decorates in its author's stead: `names` are of the frame where the function stands."""
    if isinstance(function, Tool):
        raise RegistrationError(f"{function!r} is a tool already")
    if not callable(function):
        raise InvalidSignature(f"a tool is made from a function, not from {type(function).__name__}")
    _check_target(function)
    given = options.get("name")
    name = name_of(function) if given is None else given
    what = f"tool {name!r}"
    check_kinds(options, what)
    strict = options.get("strict", True)
    bounds = options.get("bounds", UNBOUNDED)
    hints = names.hints(function)
    parameters = read_parameters(function, hints, strict=strict, what=what)
    codec = read_result(hints, what, bounds)
    own_output = options.get("output_schema")
    output = codec.schema if own_output is None else dict(own_output)
    wanted = options.get("allowed_callers", ("direct",))
    callers = wanted if isinstance(wanted, str) else tuple(wanted)
    if output is None and "programmatic" in callers:
        raise InvalidSignature(
            f"{what}: programs must know what it returns; annotate the return type, or give output_schema"
        )
    description = options.get("description")
    contract = Contract(
        name=name,
        description=summary(function) if description is None else description,
        parameters=parameters.schema,
        accepted=parameters.accepted if parameters.accepted is not parameters.schema else None,
        output_schema=output,
        allowed_callers=cast("tuple[CallerKind, ...]", callers),
        strict=strict,
        defer_loading=options.get("defer_loading", False),
        sensitive_parameters=parameters.sensitive,
        sensitive_results=_sensitive_results(codec, parameters, output),
        checked=BY_GENERATOR if own_output is None else None,
        **declared_by(options),
    )
    return Tool(contract, function, parameters=parameters, codec=codec)


def _sensitive_results(codec: Codec, parameters: Parameters, output: JsonObject | None) -> tuple[str, ...]:
    """The marks of the return annotation, and of arguments that a partial result says to go on with."""
    if not parameters.sensitive or output is None or '"continuation"' not in dumps(output):
        return codec.sensitive
    return (*codec.sensitive, *(f"/continuation{path}" for path in parameters.sensitive))


def define_tool(
    definition: Mapping[str, JsonValue],
    function: Callable[..., object],
    **options: Unpack[ContractOptions],
) -> AnyTool:
    """Make a tool from a raw function-tool definition and the function that answers it.

    The definition goes over the wire unchanged. The function gets the arguments by keyword, plus the context
    where it has a parameter annotated `ToolContext`, and returns JSON. Raises `RegistrationError`.
    """
    names = Locals(sys._getframe(1))
    if unknown := set(options) - ContractOptions.__annotations__.keys():
        raise TypeError(f"define_tool() has no option {sorted(unknown)[0]!r}; the definition says the rest")
    if definition.get("type", "function") != "function":
        raise RegistrationError(f"only function tools run here, not {definition.get('type')!r}")
    if not callable(function):
        raise InvalidSignature(f"a tool is made from a function, not from {type(function).__name__}")
    _check_target(function)
    check_kinds(options, f"tool {definition.get('name')!r}")
    parameters, callers = definition.get("parameters"), definition.get("allowed_callers")
    contract = Contract(
        name=cast("str", definition.get("name")),
        description=cast("str", definition.get("description") or ""),
        parameters=(
            {"type": "object", "properties": {}} if parameters is None else cast("JsonObject", parameters)
        ),
        output_schema=cast("JsonObject | None", definition.get("output_schema")),
        allowed_callers=cast("tuple[CallerKind, ...]", ("direct",) if callers is None else callers),
        strict=definition.get("strict") is True,
        defer_loading=definition.get("defer_loading") is True,
        definition={"type": "function", **definition},
        **declared_by(options),
    )
    return Tool(contract, function, names=names)


async def _off_the_loop(function: Callable[[], object]) -> object:
    value = await run_in_thread(function)
    return await value if inspect.isawaitable(value) else value


async def _awaited(step: Awaitable[object]) -> object:
    return await step


_MAKES_JSON = (dict, list, str, int, float)  # what these make of their arguments is a result


def _check_target(function: object) -> None:
    """Raises `InvalidSignature` for what can be called and gives no result: an instance, or a stream, of its own."""
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    if isinstance(target, type) and not issubclass(target, _MAKES_JSON):
        raise InvalidSignature(f"a tool is made from a function, not from the class {target.__name__!r}")
    body = target if inspect.isroutine(target) else type(target).__call__
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise InvalidSignature(
            f"function {name_of(function)!r}: a tool returns one value; collect the stream, with a bound"
        )


def _is_async(function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or (
        not inspect.isroutine(function) and inspect.iscoroutinefunction(type(function).__call__)
    )
