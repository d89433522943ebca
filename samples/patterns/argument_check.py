"""The argument check: a middleware looks at every call before it runs, whoever makes it.

    python samples/patterns/argument_check.py

A schema says that an amount is an integer; that at most 100.00 may be refunded without a person is a rule of
the business. The middleware refuses with a message that the model can act on, and the tool never runs. Calls
from inside programs go through it as well.
"""

from dataclasses import dataclass

import ptc
from shared import show

LIMIT_CENTS = 10_000


@dataclass
class Refund:
    order_id: str
    refunded_cents: int


@ptc.tool
async def refund(order_id: str, amount_cents: int) -> Refund:
    """Refund an amount, in cents, of an order."""
    return Refund(order_id, amount_cents)


async def limit_refunds(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
    amount = invocation.arguments.get("amount_cents")
    if isinstance(amount, int) and amount > LIMIT_CENTS:
        return ptc.Denied("not_authorized", f"at most {LIMIT_CENTS} cents can be refunded without a person")
    return await next(invocation)


if __name__ == "__main__":
    show("argument_check", "Refund order A-1.", tools=[refund], middleware=[limit_refunds])
