"""A small real toolset: search with continuation, get, one mutation with its reconciliation, a summary.

Each tool is one capability. The database comes from the designer, the tenant from the run; neither can be
named by a model. Nothing is unbounded, and what is missing is said.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import ptc
from samples.records.store import Store

PAGE = 3
COUNTED = 1_000

CustomerId = Annotated[str, Field(pattern=r"^c_[0-9]{3}$", description="A customer's id, such as c_001.")]
OperationId = Annotated[
    str, Field(pattern=r"^op_[a-z0-9]{1,20}$", description="A new id for each intended change, such as op_1.")
]
Status = Literal["active", "blocked"]
Database = Annotated[Store, ptc.Designer]

records = ptc.Extension(ptc.Manifest("records", "1.0", "Customer records of the current tenant."))


class Found(BaseModel):
    """A customer in a list."""

    id: str = Field(max_length=5)
    name: str = Field(max_length=80)
    status: Status


class Shipment(BaseModel):
    """A parcel on its way."""

    number: str = Field(max_length=20)


class Customer(BaseModel):
    """All that there is about one customer. `phone` is null if none is known."""

    id: str = Field(max_length=5)
    name: str = Field(max_length=80)
    email: Annotated[str, Field(max_length=120), ptc.Sensitive]
    phone: Annotated[str, Field(max_length=30)] | None
    status: Status
    version: int
    shipments: Annotated[list[Shipment], Field(max_length=20)] | ptc.Unavailable


class Changed(BaseModel):
    """A change that was made."""

    id: str = Field(max_length=5)
    status: Status
    version: int


class Operation(BaseModel):
    """What became of an operation."""

    happened: bool
    customer: str | None = Field(max_length=5)
    status: Status | None


class Summary(BaseModel):
    """How many customers have which status."""

    active: int
    blocked: int


def tenant_of(context: ptc.ToolContext) -> str:
    if context.tenant is None:
        raise ptc.ToolError("this run acts for no tenant")
    return context.tenant


@records.tool(
    effects="read",
    allowed_callers=["direct", "programmatic"],
    authority=["records:read"],
    bounds=ptc.Bounds(items=PAGE),
)
def search(
    text: Annotated[str, Field(max_length=40, description="Part of a name; empty for everybody.")],
    store: Database,
    context: ptc.ToolContext,
    after: Annotated[str, Field(max_length=5, description="Go on after this id.")] = "",
) -> Annotated[list[Found], Field(max_length=PAGE)] | ptc.EmptyResult | ptc.PartialResult[list[Found]]:
    """Find customers by name, three at a time, in the order of their ids.

    A partial result holds the arguments that go on from there.
    """
    rows = store.search(tenant_of(context), text, after, PAGE + 1)
    page = [Found(id=row["id"], name=row["name"], status=row["status"]) for row in rows[:PAGE]]
    if not page:
        return ptc.EmptyResult(reason="no further customer has that in the name")
    if len(rows) <= PAGE:
        return page
    return ptc.PartialResult(
        value=page,
        missing=[f"customers after {page[-1].id}"],
        continuation={"text": text, "after": page[-1].id},
    )


@records.tool(effects="read", allowed_callers=["direct", "programmatic"], authority=["records:read"])
def get(customer_id: CustomerId, store: Database, context: ptc.ToolContext) -> ptc.Traced[Customer]:
    """Everything about one customer. Shipments come from another system and may be unavailable."""
    row = store.get(tenant_of(context), customer_id)
    shipments: list[Shipment] | ptc.Unavailable = [Shipment(number=f"S-{customer_id}")]
    if not store.shipments_available:
        shipments = ptc.Unavailable(reason="the shipping system does not answer", retry=True)
    customer = Customer(
        id=row["id"],
        name=row["name"],
        email=row["email"],
        phone=row["phone"],
        status=row["status"],
        version=row["version"],
        shipments=shipments,
    )
    source = ptc.Source("records", customer_id, str(row["version"]))
    return ptc.Traced.of(customer, source, classification="confidential")


@records.tool(
    effects="write",
    risk_level="medium",
    commitment="sets the status of one customer",
    idempotency=ptc.Idempotency("operation_id", "operation_id"),
    reconciliation=ptc.Reconciliation("records.find_operation", {"operation_id": "operation_id"}),
    allowed_callers=["direct", "programmatic"],
    authority=["records:write"],
)
def set_status(
    operation_id: OperationId,
    customer_id: CustomerId,
    status: Annotated[Status, Field(description="The status to be set.")],
    store: Database,
    context: ptc.ToolContext,
) -> Changed:
    """Block or unblock one customer. The same operation id again changes nothing."""
    version = store.set_status(tenant_of(context), operation_id, customer_id, status)
    return Changed(id=customer_id, status=status, version=version)


@records.tool(effects="read", allowed_callers=["direct", "programmatic"], authority=["records:read"])
def find_operation(operation_id: OperationId, store: Database, context: ptc.ToolContext) -> Operation:
    """Tell whether an operation took effect: for a change whose outcome is uncertain."""
    row = store.operation(tenant_of(context), operation_id)
    if row is None:
        return Operation(happened=False, customer=None, status=None)
    return Operation(happened=True, customer=row["customer"], status=row["status"])


@records.tool(effects="read", allowed_callers=["direct", "programmatic"], authority=["records:read"])
def count_by_status(
    store: Database, context: ptc.ToolContext
) -> ptc.Traced[Summary | ptc.PartialResult[Summary]]:
    """Count the tenant's customers for each status. Of more than a thousand the result is partial, and says so."""
    found = store.search(tenant_of(context), "", "", COUNTED + 1)
    rows = found[:COUNTED]
    traced = [ptc.Traced.of(row["status"], ptc.Source("records", row["id"])) for row in rows]

    def counted(statuses: list[str]) -> Summary | ptc.PartialResult[Summary]:
        number = Counter(statuses)
        summary = Summary(active=number["active"], blocked=number["blocked"])
        if len(found) <= COUNTED:
            return summary
        return ptc.PartialResult(value=summary, missing=[f"customers after {rows[-1]['id']}"])

    return ptc.summarise(traced, counted)


def toolset(store: Store) -> list[ptc.AnyTool]:
    """The tools over one database: what an application gives to its runner or sandbox."""
    return [entry.configure(store=store) for entry in records.tools]
