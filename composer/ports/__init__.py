"""What the core asks of the world outside, by noun; the adapters in `composer/stores` answer it."""

from composer.ports.clock import ALWAYS, Clock
from composer.ports.doors import Destination, Doors, SeenConversation, Withdrawal
from composer.ports.erasing import Erasing, StoredReply
from composer.ports.log import Appended, ConversationRow, Identity, Log, NewConversation, RoomState, Seen
from composer.ports.memories import Drawn, Extractor, Memories, NewMemory, Outdated, Scope
from composer.ports.models import ChatMessage, ChatModel, Chunk, Embedder, Tokenizer, Vectors
from composer.ports.recall import Findable, Found, Recall
from composer.ports.store import Locks, Store, Transaction, WorkingCache
from composer.ports.structured import Fact, Landmark, LandmarkState, Project, Projects, Structured
from composer.ports.summaries import Compaction, Compactions, DueMark, NewSummary, Span, StoredSummary, Summaries
from composer.ports.turns import Answer, StoredTurn, Turns
from composer.ports.upkeep import JobRun, Ledger, TenantSettings, Upkeep

__all__ = [
    "ALWAYS",
    "Answer",
    "Appended",
    "ChatMessage",
    "ChatModel",
    "Chunk",
    "Clock",
    "Compaction",
    "Compactions",
    "ConversationRow",
    "Destination",
    "Doors",
    "Drawn",
    "DueMark",
    "Embedder",
    "Erasing",
    "Extractor",
    "Fact",
    "Findable",
    "Found",
    "Identity",
    "JobRun",
    "Landmark",
    "LandmarkState",
    "Ledger",
    "Locks",
    "Log",
    "Memories",
    "NewConversation",
    "NewMemory",
    "NewSummary",
    "Outdated",
    "Project",
    "Projects",
    "Recall",
    "RoomState",
    "Scope",
    "Seen",
    "SeenConversation",
    "Span",
    "Store",
    "StoredReply",
    "StoredSummary",
    "StoredTurn",
    "Structured",
    "Summaries",
    "TenantSettings",
    "Tokenizer",
    "Transaction",
    "Turns",
    "Upkeep",
    "Vectors",
    "Withdrawal",
    "WorkingCache",
]
