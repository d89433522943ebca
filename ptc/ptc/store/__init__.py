"""Run stores: where a run's steps are kept, so that it survives its process. See docs/durable.md."""

from ptc.store.errors import (
    LeaseLost,
    RequestUncertain,
    RunExists,
    RunLeased,
    RunUnknown,
    StoreError,
    StoreUnavailable,
    StoreUnreadable,
)
from ptc.store.protocol import ImmediateStore, Lease, RunInfo, RunStore, Step, StoredRun, StoredStatus
from ptc.store.sqlite import SQLiteRunStore

__all__ = [
    "ImmediateStore",
    "Lease",
    "LeaseLost",
    "RequestUncertain",
    "RunExists",
    "RunInfo",
    "RunLeased",
    "RunStore",
    "RunUnknown",
    "SQLiteRunStore",
    "Step",
    "StoreError",
    "StoreUnavailable",
    "StoreUnreadable",
    "StoredRun",
    "StoredStatus",
]
