"""The eight CPU workloads: programs that compute and call nothing, as models write them.

Each ends in an expression, its value, which is the same wherever it runs. On CPython 3.11 each takes some
50 to 150 ms on one core of a small machine.
"""

from __future__ import annotations

from typing import Final

WORKLOADS: Final[dict[str, str]] = {
    "loop": """
total = 0
i = 0
while i < 400_000:
    if i % 3 == 0:
        total += i
    elif i % 5 == 0:
        total -= 1
    else:
        total ^= i & 7
    i += 1
total
""",
    "group-by": """
rows = [{"region": f"r{i % 17}", "product": i % 29, "amount": (i * 7919) % 1000} for i in range(60_000)]
groups = {}
for row in rows:
    key = (row["region"], row["product"])
    if key not in groups:
        groups[key] = {"count": 0, "total": 0, "largest": 0}
    group = groups[key]
    group["count"] += 1
    group["total"] += row["amount"]
    if row["amount"] > group["largest"]:
        group["largest"] = row["amount"]
[len(groups), sum(group["total"] for group in groups.values()), max(group["count"] for group in groups.values())]
""",
    "strings": """
lines = [f"{i:06d};name{i % 100};{i * 1.5:.2f};tag{i % 7}" for i in range(40_000)]
seen = {}
parts = []
for line in lines:
    number, name, price, tag = line.strip().split(";")
    name = name.upper().replace("NAME", "N-")
    seen[name] = seen.get(name, 0) + float(price)
    if tag.endswith("3") and number.startswith("00"):
        parts.append("{}={}".format(name, price))
text = ",".join(parts)
[len(seen), len(text), text[:20], round(sum(seen.values()), 2)]
""",
    "sort": """
state = 12345
values = []
for _ in range(60_000):
    state = (state * 1103515245 + 12345) % 2147483648
    values.append(state)
ordered = sorted(values)
by_digit = sorted(values, key=lambda value: (value % 10, -value))
pairs = sorted(((value % 100, str(value)) for value in values), reverse=True)
values.sort(key=str)
[ordered[0], ordered[-1], by_digit[0], pairs[0][0], values[0]]
""",
    "recursion": """
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)

def depth(tree):
    return 1 + max((depth(child) for child in tree), default=0)

def build(n):
    return [build(n - 1), build(n - 2)] if n > 1 else []

[fib(25), depth(build(19))]
""",
    "comprehension": """
total = 0
for n in range(150):
    squares = [x * x for x in range(5_000) if x % 2]
    index = {x: y for x, y in zip(squares, range(len(squares)))}
    distinct = {x % 97 for x in squares}
    total += sum(v for v in index.values() if v % 3 == 0) + len(distinct)
    matrix = [[r * c for c in range(20)] for r in range(20)]
    total += sum(sum(row) for row in zip(*matrix))
total
""",
    "unpacking": """
points = [(i, i + 1, (i * 2, i * 3)) for i in range(50_000)]
total = 0
for a, b, (c, d) in points:
    first, *rest = (a, b, c, d)
    a, b = b, a
    x, y, z = rest
    total += first + x - y + z + a - b
pairs = {"a": 1, "b": 2}
for key, value in pairs.items():
    total += value
for n, (a, b, _) in enumerate(points):
    total += n ^ a ^ b
def spread(a, b, c):
    return a + b + c
for i in range(30_000):
    total += spread(*(i, 1, 2)) + spread(**{"a": 1, "b": i, "c": 3})
total
""",
    "method calls": """
class Vector:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def add(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def dot(self, other):
        return self.x * other.x + self.y * other.y

class Account:
    def __init__(self):
        self._balance = 0
        self._entries = []

    @property
    def balance(self):
        return self._balance

    def deposit(self, amount):
        self._check(amount)
        self._balance += amount
        self._entries.append(amount)
        return self

    def _check(self, amount):
        if amount < 0:
            raise ValueError("negative")

class Savings(Account):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def deposit(self, amount):
        return super().deposit(amount * self.rate)

total = 0
position = Vector(0, 0)
step = Vector(1, 2)
for i in range(60_000):
    position = position.add(step)
    total += position.dot(step) % 7
account = Account()
savings = Savings(2)
for i in range(30_000):
    account.deposit(i).deposit(1)
    savings.deposit(1)
    total += account.balance % 3
[total, account.balance, savings.balance, position.x]
""",
}
