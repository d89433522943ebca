"""Point 6: a mutation commits to one thing, and when nobody knows whether it happened, that is what is said."""

import asyncio
import http.client

import anyio
import httpx2
import pytest
import urllib3

from ptc_tools import (
    Call,
    Catalog,
    Failure,
    Idempotency,
    Invocation,
    Invoker,
    Next,
    Outcome,
    Reconciliation,
    RegistrationError,
    Retry,
    RunContext,
    Success,
    ToolContext,
    TransportError,
    Uncertain,
    error_object,
    tool,
)
from ptc_tools.lint import lint
from ptc_tools.mutation import is_transport_error
from tests.tools.tool_support import MemoryRecorder, call, invoke


def mutation(error: BaseException | None = None, **options: object):  # type: ignore[no-untyped-def]
    attempts: list[int] = []

    async def update(operation_id: str, status: str, ctx: ToolContext) -> str:
        """Set the status."""
        attempts.append(ctx.attempt)
        if error is not None:
            raise error
        return status

    values = {"effects": "write", "commitment": "sets one status", **options}
    return tool(update, **values), attempts  # type: ignore[call-overload]


ARGUMENTS = {"operation_id": "op_1", "status": "open"}


class TestEvidence:
    @pytest.mark.parametrize("source", ["argument_hash", "arguments", "hash", "", "client"])
    def test_an_argument_hash_is_no_evidence(self, source: str) -> None:
        """A customer may order the same thing twice."""
        with pytest.raises(RegistrationError, match="no evidence"):
            Idempotency(source)  # type: ignore[arg-type]

    def test_an_operation_id_names_its_parameter(self) -> None:
        """Evidence that nobody can point at is none."""
        for bad in (lambda: Idempotency("operation_id"), lambda: Idempotency("service", "x")):
            with pytest.raises(RegistrationError):
                bad()
        with pytest.raises(RegistrationError, match="no parameter"):
            mutation(idempotency=Idempotency("operation_id", "nope"))

    def test_the_protocols_key_must_be_taken(self) -> None:
        """A tool that has no context cannot hand the key on."""

        async def update(n: int) -> int:
            return n

        with pytest.raises(RegistrationError, match="idempotency_key"):
            tool(update, effects="write", idempotency=Idempotency("protocol"))

    async def test_the_key_is_the_same_for_every_attempt_of_one_call(self) -> None:
        """That is what lets a service see the second attempt for what it is."""
        keys: list[str] = []

        @tool(effects="write", idempotency=Idempotency("protocol"))
        async def update(n: int, ctx: ToolContext) -> int:
            keys.append(ctx.idempotency_key)
            if ctx.attempt < 3:
                raise ConnectionError
            return n

        outcome = await invoke(update, {"n": 1}, middleware=[Retry(3, delay=0)])
        assert outcome == Success(1)
        assert len(keys) == 3
        assert len(set(keys)) == 1


class TestUncertain:
    @pytest.mark.parametrize(
        "error",
        [ConnectionResetError("x"), TimeoutError("x"), EOFError(), TransportError("x"), BrokenPipeError()],
    )
    async def test_a_broken_connection_leaves_a_mutation_uncertain(self, error: Exception) -> None:
        """The request may have arrived; 'failed' would be a guess."""
        update, _ = mutation(error, reconciliation=Reconciliation("find_operation", {"id": "operation_id"}))
        recorder = MemoryRecorder()
        outcome = await invoke(update, ARGUMENTS, recorder=recorder)
        assert isinstance(outcome, Uncertain)
        assert outcome.reconciliation == {"tool": "find_operation", "arguments": {"id": "op_1"}}
        assert "find_operation" in outcome.message
        assert recorder.last is outcome
        assert error_object(outcome)["error"]["reconciliation"] == outcome.reconciliation  # type: ignore[index, call-overload]

    async def test_a_deadline_a_broken_result_and_a_cancellation_leave_it_uncertain_too(self) -> None:
        """The tool was running: what it did is not known."""

        @tool(effects="write", timeout=0.01)
        async def hangs(n: int) -> int:
            await asyncio.Event().wait()
            return n

        @tool(effects="destructive")
        async def odd(n: int) -> int:
            return "x"  # type: ignore[return-value]

        assert isinstance(await invoke(hangs, {"n": 1}), Uncertain)
        assert isinstance(await invoke(odd, {"n": 1}), Uncertain)
        entered = asyncio.Event()

        @tool(effects="write")
        async def waits(n: int) -> int:
            entered.set()
            await asyncio.Event().wait()
            return n

        recorder = MemoryRecorder()
        task = asyncio.create_task(invoke(waits, {"n": 1}, recorder=recorder))  # type: ignore[arg-type]
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(recorder.last, Uncertain)

    async def test_what_the_tool_says_itself_is_a_failure(self) -> None:
        """A service that answered 'no' has not done it."""
        update, _ = mutation(ValueError("the ticket is closed"))
        outcome = await invoke(update, ARGUMENTS)
        assert type(outcome) is Failure
        assert outcome.code == "tool_error"

    async def test_a_read_that_breaks_is_a_failure(self) -> None:
        """There is nothing to be uncertain about."""
        read, _ = mutation(ConnectionResetError(), effects="read", commitment=None)
        assert type(await invoke(read, ARGUMENTS)) is Failure

    @pytest.mark.parametrize(
        "error",
        [
            httpx2.RemoteProtocolError("Server disconnected without sending a response."),
            httpx2.ReadTimeout("late"),
            urllib3.exceptions.ProtocolError("Connection aborted."),
            urllib3.exceptions.ReadTimeoutError(None, "/", "late"),  # type: ignore[arg-type]
            anyio.EndOfStream(),
            http.client.IncompleteRead(b"half"),
        ],
    )
    def test_a_clients_own_error_of_the_connection_counts_without_the_systems(self, error: Exception) -> None:
        """A server that closes after it read the request leaves no error of the system's behind."""
        assert is_transport_error(error)

    async def test_a_server_that_closes_after_it_read_a_request_leaves_a_mutation_uncertain(self) -> None:
        """Over a real connection, as it happens when a service is restarted."""

        async def read_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(read_and_close, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        @tool(effects="write", commitment="posts one thing")
        async def post(n: int) -> int:
            """Post it."""
            async with httpx2.AsyncClient(trust_env=False) as client:
                await client.post(f"http://127.0.0.1:{port}/", json={"n": n})
            return n

        async with server:
            assert isinstance(await invoke(post, {"n": 1}), Uncertain)

    def test_the_systems_error_is_found_behind_a_librarys(self) -> None:
        """HTTP clients wrap the system's errors in classes of their own."""

        class ClientError(Exception):
            pass

        class LibraryOSError(OSError):
            pass

        def wrapped(cause: BaseException) -> BaseException:
            error = ClientError("x")
            error.__cause__ = cause
            return error

        assert is_transport_error(wrapped(wrapped(ConnectionResetError())))
        assert is_transport_error(LibraryOSError())
        assert is_transport_error(ExceptionGroup("g", [ValueError(), ConnectionError()]))
        assert not is_transport_error(wrapped(ValueError()))
        assert not is_transport_error(FileNotFoundError())
        circular = ClientError()
        circular.__context__ = circular
        assert not is_transport_error(circular)


class TestRetry:
    async def test_a_mutation_is_not_tried_again_unless_it_is_idempotent(self) -> None:
        """Neither by our middleware nor by one that insists."""

        async def insists(invocation: Invocation, next: Next) -> Outcome:
            await next(invocation)
            return await next(invocation)

        for middleware in (Retry(3, delay=0), insists):
            update, attempts = mutation(ConnectionError())
            assert isinstance(await invoke(update, ARGUMENTS, middleware=[middleware]), Uncertain)
            assert attempts == [1]
        update, attempts = mutation(
            ConnectionError(), idempotency=Idempotency("operation_id", "operation_id")
        )
        assert isinstance(await invoke(update, ARGUMENTS, middleware=[Retry(3, delay=0)]), Uncertain)
        assert attempts == [1, 2, 3]

    async def test_undeclared_effects_are_not_retried(self) -> None:
        """What does not say that it only reads may change something."""
        unknown, attempts = mutation(ConnectionError(), effects=None)
        await invoke(unknown, ARGUMENTS, middleware=[Retry(3, delay=0)])
        assert attempts == [1]
        read, attempts = mutation(ConnectionError(), effects="read", commitment=None)
        await invoke(read, ARGUMENTS, middleware=[Retry(3, delay=0)])
        assert attempts == [1, 2, 3]

    async def test_what_did_not_break_on_the_way_is_not_retried(self) -> None:
        """An answer is an answer."""
        read, attempts = mutation(ValueError("no"), effects="read", commitment=None)
        await invoke(read, ARGUMENTS, middleware=[Retry(3, delay=0)])
        assert attempts == [1]


class TestReconciliation:
    def test_the_declared_read_must_be_there_and_must_read(self) -> None:
        """Advice that cannot be followed is refused; that the read is left out altogether is for lint."""

        @tool(effects="read")
        async def find_operation(id: str) -> str:
            return id

        @tool(effects="write", name="find_operation")
        async def writes(id: str) -> str:
            return id

        update, _ = mutation(reconciliation=Reconciliation("find_operation", {"id": "operation_id"}))
        assert len(Catalog([update, find_operation])) == 2
        assert {finding.rule for finding in lint([update.contract])} >= {"reconciliation-missing"}
        assert "reconciliation-missing" not in {
            f.rule for f in lint([update.contract, find_operation.contract])
        }
        with pytest.raises(RegistrationError, match="changes something"):
            Catalog([update, writes])
        other, _ = mutation(reconciliation=Reconciliation("find_operation", {"nope": "operation_id"}))
        with pytest.raises(RegistrationError, match="nope"):
            Catalog([other, find_operation])

    async def test_the_request_may_be_made_of_the_key_and_the_call(self) -> None:
        """Where the service knows operations by our key, that is what is asked for."""

        @tool(effects="read")
        async def find_operation(key: str, call: str) -> str:
            return key

        update, _ = mutation(
            ConnectionError(),
            reconciliation=Reconciliation("find_operation", {"key": "$idempotency_key", "call": "$call_id"}),
        )
        the_call = call(update, ARGUMENTS)
        outcome = await Invoker([update, find_operation]).invoke(the_call, RunContext("r"))
        assert isinstance(outcome, Uncertain)
        context = ToolContext(RunContext("r"), the_call, None)  # type: ignore[arg-type]
        assert outcome.reconciliation == {
            "tool": "find_operation",
            "arguments": {"key": context.idempotency_key, "call": "call_1"},
        }
        answer = await Invoker([update, find_operation]).invoke(
            Call("call_2", "find_operation", outcome.reconciliation["arguments"]),  # type: ignore[arg-type, index]
            RunContext("r"),
        )
        assert answer == Success(context.idempotency_key)
