"""What every statement and every function must be, so that none is left out of the races: one of them, or apart."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sql.loader import migrations, queries

_ROOT: Final = Path(__file__).parents[2]
_STORES: Final = re.compile(r"\b(?:INSERT INTO|UPDATE)\s+(\w+)")


def _names_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Tables with words of people, or with what shows them elsewhere.
WITH_WORDS: Final = _names_in(
    """compactions conversations deliveries episodes facts gateway_exchanges gateway_turns landmarks memories messages
    projects quarantine recall_index recall_terms reminders summaries teams turns users"""
)
WITHOUT_WORDS: Final = _names_in(
    """agents api_keys app_tokens audit_anchors audit_events audit_seals audit_unsealed billing_customers deployment
    erased extraction_queue identities imports invites job_runs learning_batches lineage members model_usage
    oauth_clients one_time_codes openid_logins operation_totals posted_files project_members quota_notices receipts
    reembedded requests retractions schema_migrations settings summaries_due team_members tenants
    tool_reads unread_files usage_reservations web_sessions webhook_changes webhooks"""
)
# Statements that write to the former and need no race, and why.
_APART: Final = {
    "it takes words away": """erase_people erase_prompts erase_replace_text prompts_expire conversation_clear_titles
        conversations_clear_unused_names users_blank_names gateway_exchanges_end
        erase_traces expired_delete usage_note_erasure""",
    "it is part of an erasure": """facts_reinstate landmarks_reinstate landmarks_inherit memories_reinstate
        memories_reindex_sources entries_return restore_end landmark_correct""",
    "it moves rows, or marks them, and adds no words": """conversation_assign conversations_bump_version
        conversations_note_history_changed conversations_set_read conversations_skip
        conversations_leave_projects
        digest_set entry_file entry_say_again fact_close import_keep landmark_set_state memories_merge memories_restate
        memories_supersede message_note_edit
        messages_set_skipped notice_begin notice_posted quarantine_decide reembed_switch
        reminder_posted reminders_end reminders_refuse room_add_id session_turn_rate
        room_note_privacy room_refile_after room_set room_set_private room_set_recording
        thread_set_archived threads_follow_room turn_delivered turn_end user_set
        person_set users_link users_unlink gateway_turn_put""",
    "tests/deep/integration/test_voice_notes.py": "message_set_files",
    "names: tests/integration/test_erasure.py, test_forget.py": "users_ensure users_restore_names conversations_ensure",
    "tests/integration/test_ended_credentials.py": """session_set_name team_insert project_insert
        place_rename""",
}
APART: Final = {name: why for why, names in _APART.items() for name in _names_in(names)}


def tables() -> set[str]:
    """All of the schema."""
    schema = "\n".join(migration.sql for migration in migrations())
    return set(re.findall(r"^CREATE TABLE (\w+)", schema, re.MULTILINE))


def storing() -> set[str]:
    """The named queries that write to a table with words."""
    sources = {name: re.sub(r"--[^\n]*", "", query.source) for name, query in queries().items()}
    return {name for name, source in sources.items() if not WITH_WORDS.isdisjoint(_STORES.findall(source))}


def erasing() -> set[str]:
    """The functions that call composer.memory.forget, as "path:function"."""
    found: set[str] = set()
    for path in (path for folder in ("composer", "bot", "jobs") for path in (_ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "forget" in text:
            tree = ast.parse(text)
            found |= {f"{path.relative_to(_ROOT)}:{name}" for name in _calling(tree, set(_erasing_names(tree)), ())}
    return found


def _erasing_names(tree: ast.Module) -> Iterator[str]:
    """What a module calls the functions that erase."""
    erasing = ("forget", "edit", "reword")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "composer.memory.forget":
            yield from (each.asname or each.name for each in node.names if each.name in erasing)
        if isinstance(node, ast.ImportFrom) and node.module == "composer.memory":
            modules = [each.asname or each.name for each in node.names if each.name == "forget"]
            yield from (f"{module}.{name}" for module in modules for name in erasing)


def _calling(node: ast.AST, names: set[str], within: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        is_named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inside = (*within, getattr(child, "name", "")) if is_named else within
        if isinstance(child, ast.Call) and ast.unparse(child.func) in names:
            yield ".".join(inside)
        yield from _calling(child, names, inside)
