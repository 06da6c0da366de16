"""The engine of flows: pure Python, no Django.

What a flow's author and a runner's user need is exported here; the modules behind are private.
"""

from .approval import (
    ApprovalDecision,
    ApprovalPort,
    ApprovalRequest,
    ApprovalStore,
    DeferredApproval,
    MemoryStore,
)
from .checkpoint import Checkpoint
from .context import Context
from .errors import (
    AdapterError,
    ApprovalAlreadyDecided,
    ApprovalDenied,
    ApprovalPending,
    ErrorInfo,
    FlowError,
    Interrupted,
)
from .executor import Event, Executor
from .graph import Flow
from .guards import BudgetGuard, CallCountGuard, Guard, GuardedCall, Ledger, SummingLedger
from .journal import ToolResult
from .nodes import END, START, Call, Gate, Go, Human, Map
from .redact import Secret
from .runner import FlowResult, FlowRunner
from .tools import Tool, tool

__all__ = [
    "END",
    "START",
    "AdapterError",
    "ApprovalAlreadyDecided",
    "ApprovalDecision",
    "ApprovalDenied",
    "ApprovalPending",
    "ApprovalPort",
    "ApprovalRequest",
    "ApprovalStore",
    "BudgetGuard",
    "Call",
    "CallCountGuard",
    "Checkpoint",
    "Context",
    "DeferredApproval",
    "ErrorInfo",
    "Event",
    "Executor",
    "Flow",
    "FlowError",
    "FlowResult",
    "FlowRunner",
    "Gate",
    "Go",
    "Guard",
    "GuardedCall",
    "Human",
    "Interrupted",
    "Ledger",
    "Map",
    "MemoryStore",
    "Secret",
    "SummingLedger",
    "Tool",
    "ToolResult",
    "tool",
]
