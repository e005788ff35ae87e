"""What the core asks of the world outside, by noun; the adapters in `composer/stores` answer it."""

from composer.ports.clock import ALWAYS, Clock
from composer.ports.doors import Destination, Doors, Images, SeenConversation, UnansweredCommand, Withdrawal
from composer.ports.erasing import Erasing, StoredReply
from composer.ports.log import Appended, ConversationRow, Identity, Log, NewConversation, RoomState, Seen
from composer.ports.memories import Alike, Drawn, Extractor, Memories, NewMemory, Outdated, Scope, Successor
from composer.ports.models import ChatMessage, ChatModel, Chunk, Embedder, Image, Tokenizer, Vectors
from composer.ports.recall import Background, Embeddable, Findable, Found, Recall
from composer.ports.reembedding import EmbedderMark, Reembedding, ReembedStatus
from composer.ports.store import Locks, Store, Transaction, WorkingCache
from composer.ports.structured import Fact, Landmark, LandmarkState, Project, Projects, Structured
from composer.ports.summaries import Compaction, Compactions, DueMark, NewSummary, Span, StoredSummary, Summaries
from composer.ports.turns import Answer, StoredTurn, Turns
from composer.ports.upkeep import JobRun, Ledger, TenantSettings, Upkeep

__all__ = [
    "ALWAYS",
    "Alike",
    "Answer",
    "Appended",
    "Background",
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
    "Embeddable",
    "Embedder",
    "EmbedderMark",
    "Erasing",
    "Extractor",
    "Fact",
    "Findable",
    "Found",
    "Identity",
    "Image",
    "Images",
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
    "ReembedStatus",
    "Reembedding",
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
    "Successor",
    "Summaries",
    "TenantSettings",
    "Tokenizer",
    "Transaction",
    "Turns",
    "UnansweredCommand",
    "Upkeep",
    "Vectors",
    "Withdrawal",
    "WorkingCache",
]
