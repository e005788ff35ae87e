"""What the core asks of the world outside, by noun; the adapters in `composer/stores` answer it."""

from composer.ports.clock import ALWAYS, Clock
from composer.ports.doors import Destination, Doors, Images, Retractable, SeenConversation, UnansweredCommand
from composer.ports.erasing import Erasing, StoredReply
from composer.ports.log import Appended, ConversationRow, Identity, Log, NewConversation, RoomState, Seen
from composer.ports.memories import (
    ExtractedStatement,
    Extractor,
    Memories,
    NewMemory,
    Scope,
    SimilarMemory,
    Successor,
    SupersededMemory,
)
from composer.ports.models import ChatMessage, ChatModel, Chunk, Embedder, Image, Tokenizer, Vectors
from composer.ports.recall import Background, Candidate, EmbeddingInput, IndexEntry, Recall
from composer.ports.reembedding import EmbedderMark, Reembedding, ReembedStatus
from composer.ports.store import Locks, Store, Transaction, WorkingCache
from composer.ports.structured import Fact, Landmark, LandmarkState, Project, Projects, Structured
from composer.ports.summaries import Compaction, Compactions, DueMark, NewSummary, Span, StoredSummary, Summaries
from composer.ports.turns import Answer, StoredTurn, Turns
from composer.ports.upkeep import JobRun, Ledger, TenantSettings, Upkeep

__all__ = [
    "ALWAYS",
    "Answer",
    "Appended",
    "Background",
    "Candidate",
    "ChatMessage",
    "ChatModel",
    "Chunk",
    "Clock",
    "Compaction",
    "Compactions",
    "ConversationRow",
    "Destination",
    "Doors",
    "DueMark",
    "Embedder",
    "EmbedderMark",
    "EmbeddingInput",
    "Erasing",
    "ExtractedStatement",
    "Extractor",
    "Fact",
    "Identity",
    "Image",
    "Images",
    "IndexEntry",
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
    "Project",
    "Projects",
    "Recall",
    "ReembedStatus",
    "Reembedding",
    "Retractable",
    "RoomState",
    "Scope",
    "Seen",
    "SeenConversation",
    "SimilarMemory",
    "Span",
    "Store",
    "StoredReply",
    "StoredSummary",
    "StoredTurn",
    "Structured",
    "Successor",
    "Summaries",
    "SupersededMemory",
    "TenantSettings",
    "Tokenizer",
    "Transaction",
    "Turns",
    "UnansweredCommand",
    "Upkeep",
    "Vectors",
    "WorkingCache",
]
