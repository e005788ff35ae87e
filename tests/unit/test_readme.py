"""Every sentence of README either is proved by tests that are named here, or promises nothing that a test can show; the
tests that docs/testing.md names exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *```.*?^ *```\n", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"\n(?=\s*(?:\||- |\d\. |#))|\n\s*\n")
END = re.compile(r"(?<=[.:?])\s+(?=[A-Z`\[*(])")

RULES = "unit/test_visibility_rules.py"
MEMBERSHIP = "integration/test_membership.py"
ROOMS = "integration/test_rooms_in_dms.py"
NETWORK = "deep/e2e/test_network.py"
WORLDS = "property/test_worlds.py"

# Words of a sentence, and the tests that prove it: files below tests/, with the name of a test.
PROMISES: dict[str, tuple[str, ...]] = {
    "with what it was made of beside it": (
        "integration/test_pages.py::test_asking_works_without_a_script",
        "integration/test_pages.py::test_a_conversation_in_a_project_is_answered_from_its_rooms",
    ),
    "who can be answered from one memory": (
        "integration/test_pages.py::test_my_memory_shows_ones_own_and_who_is_answered_from_it",
    ),
    "runs one or more AI *agents*": (
        "integration/test_several_agents.py::test_a_room_addresses_agents_by_their_slugs_and_each_answers_once",
    ),
    "never say in a room what somebody told them in private": (
        "integration/test_message_path.py::test_a_message_in_a_dm_is_not_recalled_in_a_room",
        f"{WORLDS}::test_a_prompt_shows_what_the_rules_allow_and_nothing_else",
        "deep/e2e/test_week.py::test_over_a_week_every_answer_is_in_its_place_once_and_no_secret_is_elsewhere",
    ),
    "any model with an OpenAI-compatible API": (
        "deep/integration/test_openai_api.py::test_a_request_has_the_bytes_that_the_client_would_make_of_it",
    ),
    "No Docker, no root, no API key": (
        "unit/test_settings.py::test_without_settings_there_is_one_offline_agent_and_embedded_servers",
    ),
    "come as Python packages": (
        "deep/integration/test_embedded.py::test_both_servers_answer_and_listen_on_no_tcp_port",
    ),
    "Nexus keeps its data in": (
        "unit/test_settings.py::test_the_default_data_folder_follows_the_xdg_standard",
        "unit/test_settings.py::test_the_default_data_folder_is_never_in_the_private_home_of_root",
    ),
    "`make chat` opens no network port": (
        "deep/integration/test_embedded.py::test_both_servers_answer_and_listen_on_no_tcp_port",
    ),
    "`make chat` loads a few days": ("e2e/test_chat.py::test_a_terminal_shows_a_conversation",),
    "so Nexus answers by quoting what it remembers": (
        "unit/test_offline_model.py::test_the_best_line_is_quoted_with_its_speaker_and_time",
    ),
    "In a DM the agent answers every message": (
        "e2e/test_discord.py::test_a_message_that_does_not_address_the_bot_is_stored_and_not_answered",
        "e2e/test_discord.py::test_a_dm_is_answered_and_not_readable_in_any_room",
    ),
    "Alice asks the same question": ("e2e/test_chat.py::test_a_terminal_shows_a_conversation",),
    "`/help` lists every command": ("integration/test_commands.py::test_help_lists_by_subject_what_the_caller_may",),
    "shows what this costs by day, room, person and model": (
        "deep/integration/test_usage.py::test_usage_is_shown_by_what_is_asked_for",
    ),
    "Budgets, and cheaper models": (
        "deep/integration/test_usage.py::test_without_a_budget_left_a_question_is_answered_by_one_plain_sentence",
        "unit/test_settings.py::test_summaries_have_their_own_model_from_the_agent_or_from_the_common_setting",
    ),
    "prompts, to the model that you name": (
        f"{NETWORK}::test_the_model_is_the_only_address_of_answers_and_extraction",
        f"{NETWORK}::test_slack_is_the_only_address_of_the_slack_adapter",
        f"{NETWORK}::test_discord_is_the_only_address_of_the_discord_adapter",
    ),
    "texts, to an embedding model": (
        "deep/integration/test_usage_of_embeddings.py::test_an_embedder_that_runs_here_is_not_recorded",
        "deep/integration/test_voice_notes.py::test_without_a_model_nothing_is_loaded",
    ),
    "mail, texts) are read after that, documents in a process of their own": (
        "deep/integration/test_documents.py::test_a_document_of_each_kind_is_shown_and_found",
        "deep/integration/test_document_reader.py::test_what_a_document_refers_to_is_never_fetched",
    ),
    "what a model passes to [tools of MCP servers]": (
        f"{NETWORK}::test_a_tool_server_is_reached_at_its_address_only_where_it_may_be_used",
        "unit/test_settings.py::test_an_mcp_server_offers_nothing_nowhere_unless_told",
    ),
    "what people's own AI tools, such as editors": (
        "deep/integration/test_gateway_passage.py::test_only_listed_models_are_asked_for",
        "deep/integration/test_gateway_memory.py::test_a_key_gets_through_the_gateway_what_it_gets_by_a_question",
    ),
    "Nothing else: no telemetry": (
        f"{NETWORK}::test_an_import_an_answer_and_a_job_without_a_model_use_no_network_and_write_nothing_elsewhere",
    ),
    "Nexus opens no internet connection": (
        f"{NETWORK}::test_an_import_an_answer_and_a_job_without_a_model_use_no_network_and_write_nothing_elsewhere",
    ),
    "`nexus setup` asks for the model": (
        "deep/e2e/test_setup.py::test_the_model_is_asked_before_anything_is_written",
        "unit/test_setup_files.py::test_setup_writes_what_the_program_reads_and_changes_nothing_the_second_time",
    ),
    "Variables of the environment": (
        "unit/test_settings.py::test_the_environment_wins_over_the_file",
        "unit/test_setup_files.py::test_secrets_are_read_from_their_file_below_the_environment_and_above_the_toml",
    ),
    "`nexus run` then serves until you stop it": (
        "deep/e2e/test_serving.py::test_the_program_serves_until_a_signal_stops_it",
    ),
    "Stopping it, or a crash, loses nothing": (
        "deep/e2e/test_kill.py::test_an_interrupted_turn_is_answered_once_after_a_restart",
        "deep/e2e/test_kill.py::test_every_message_is_stored_once_after_a_restart",
    ),
    "It also reads from Discord and Slack": (
        "deep/e2e/test_reconciliation.py::test_what_was_said_edited_and_deleted_in_an_absence_is_followed",
        "deep/e2e/test_discord_faults.py::test_messages_missed_while_nexus_was_down_are_read_and_recent_ones_answered_once",
    ),
    "The company of `make chat` shares nothing": (
        "e2e/test_chat.py::test_the_sample_company_shares_nothing_with_yours",
        "deep/integration/test_embedded.py::test_two_processes_share_the_servers_and_the_last_one_stops_them",
    ),
    "[several processes]": (
        "deep/e2e/test_several_processes.py::test_three_processes_answer_each_question_once_and_each_conversation_in_order",
    ),
    "[upgrading](docs/deployment.md#upgrade) migrates": (
        "deep/integration/test_upgrade.py::test_an_upgraded_database_has_the_schema_of_a_fresh_one_and_all_of_its_rows",
    ),
    "The way back is a backup": (
        "deep/integration/test_backup.py::test_a_restore_brings_back_everything_that_was_backed_up",
    ),
    "run `nexus doctor`: it checks everything": (
        "deep/integration/test_doctor.py::test_a_job_that_failed_is_said_until_it_succeeds",
        "deep/integration/test_embedded.py::test_doctor_reads_a_database_that_nothing_has_migrated_yet",
    ),
    "Then [troubleshooting.md]": ("unit/test_troubleshooting.py::test_the_program_says_what_the_page_quotes",),
    "Nexus writes one every day": (
        "deep/integration/test_backup.py::test_the_daily_backup_is_tested_and_old_backups_are_deleted",
    ),
    "A *room* is a channel": (
        "integration/test_receive.py::test_a_public_thread_shares_the_namespace_of_its_room_and_a_private_thread_is_a_room",
    ),
    "It is *public* if everyone": (
        f"{RULES}::test_a_public_room_is_open_to_all_a_private_one_to_members_and_a_dm_or_session_to_its_user",
        "e2e/test_discord_members.py::test_a_channel_that_a_role_of_nexus_may_not_view_is_private",
    ),
    "A private thread is a room of its own": (
        "e2e/test_discord.py::test_a_private_thread_is_a_room_of_its_own",
        "deep/integration/test_slack_import.py::test_a_group_dm_is_private_and_imported_only_if_the_agent_is_a_member",
    ),
    "A *session* is a named conversation": (
        "integration/test_several_agents.py::test_dms_and_sessions_of_different_agents_share_nothing",
    ),
    "A *project* is a group": (f"{RULES}::test_a_room_in_a_project_reads_the_pool_whatever_the_role_of_the_asker",),
    "Anyone can make one and invite others": (
        "deep/integration/test_project_invitations.py::test_nothing_of_the_invited_changes_until_they_accept",
        "integration/test_project_routes.py::test_who_makes_a_project_is_its_admin_there_and_in_the_chat",
        "integration/test_commands.py::test_a_role_limits_what_a_member_may_do_in_a_project",
    ),
    "Anyone may leave.": (
        "deep/integration/test_project_invitations.py::test_everybody_leaves_also_who_was_left_as_the_only_admin_of_an_isolated_project",
    ),
    "What others stored is never": (
        "integration/test_gateway_of_others.py::test_what_others_wrote_is_never_in_a_system_message_and_says_whose_and_where_it_is",
        "integration/test_gateway_of_others.py::test_nothing_of_others_however_long_keeps_out_what_is_ones_own",
    ),
    "That is all that membership gives": (
        f"{RULES}::test_a_room_in_a_project_reads_the_pool_whatever_the_role_of_the_asker",
    ),
    "An *organisation* is one": ("integration/test_receive.py::test_two_workspaces_share_only_their_tenant",),
    "One installation can serve several": (
        "deep/integration/test_database_rights.py::test_one_tenant_reaches_nothing_of_another",
        "e2e/test_discord.py::test_guilds_are_isolated_from_each_other_over_several_shards",
    ),
    "A *team* is a group": (
        "integration/test_teams.py::test_what_is_shared_is_read_by_the_team_and_their_tools_alone",
    ),
    "An *admin* of a room": (
        "integration/test_permissions.py::test_where_the_platform_names_the_admins_of_a_room_who_writes_first_is_none",
        "e2e/test_slack.py::test_workspace_admins_may_run_admin_commands",
    ),
    "a message in a public room | whoever": (
        "integration/test_message_path.py::test_a_message_in_a_room_is_recalled_in_that_room",
    ),
    "a message in a private room | its": (
        f"{MEMBERSHIP}::test_a_person_who_leaves_a_private_room_reads_nothing_of_it",
    ),
    "a message in a room, public or private": (
        f"{ROOMS}::test_a_dm_reads_the_rooms_that_its_person_is_in_once_they_say_so",
        f"{ROOMS}::test_it_opens_nothing_to_anybody_else_and_nothing_elsewhere",
    ),
    "Of a public room, those who have written": (f"{ROOMS}::test_a_public_room_counts_only_for_its_recorded_members",),
    "a message in a DM with an agent": (
        f"{RULES}::test_a_dm_or_session_reads_its_own_namespace_its_users_profile_and_global",
        "integration/test_several_agents.py::test_dms_and_sessions_of_different_agents_share_nothing",
    ),
    "a message in a session | that": (
        f"{RULES}::test_a_dm_or_session_reads_its_own_namespace_its_users_profile_and_global",
    ),
    "Whoever puts their session into a project": (
        f"{MEMBERSHIP}::test_a_session_is_pooled_only_while_it_and_its_user_belong_to_the_project",
    ),
    "a message in a public room of a project": (
        f"{MEMBERSHIP}::test_a_room_removed_from_its_project_reads_its_own_messages_and_leaves_the_pool",
    ),
    "a message in a private room of a project": (
        f"{MEMBERSHIP}::test_a_private_room_is_pooled_only_when_its_own_admin_allows_it",
    ),
    "If an admin of the room shares it": (
        f"{MEMBERSHIP}::test_a_private_room_is_pooled_only_when_its_own_admin_allows_it",
    ),
    "what a person stores with a command": (
        f"{RULES}::test_a_row_is_filed_in_its_conversation_unless_a_wider_scope_is_named",
        f"{RULES}::test_a_row_filed_in_a_conversation_can_be_read_there",
    ),
    "what a person stores for a project": (
        "integration/test_sharing.py::test_a_memory_is_recalled_where_its_owner_moves_it_and_nowhere_else",
    ),
    "(`--everywhere`) | that person": (
        f"{RULES}::test_a_room_reads_its_own_namespace_global_and_the_profiles_of_participants",
        f"{RULES}::test_a_dm_or_session_reads_its_own_namespace_its_users_profile_and_global",
    ),
    "Also others who ask in a room": (
        f"{RULES}::test_a_room_reads_its_own_namespace_global_and_the_profiles_of_participants",
        f"{RULES}::test_at_most_sixteen_participants_count_the_asker_first_and_never_people_who_left",
    ),
    "stores for everyone (`--global`)": (
        "integration/test_commands.py::test_only_an_admin_sets_a_global_fact",
        f"{RULES}::test_a_guest_reads_the_conversation_and_their_own_profile",
    ),
    "Guests are those who may use only": (
        "e2e/test_trust.py::test_in_slack_restricted_people_and_strangers_are_guests",
        "e2e/test_outsiders.py::test_whoever_is_not_of_the_organisation_reads_nothing_of_it",
    ),
    "an *entry*: what a person": (
        f"{RULES}::test_the_bot_recalls_a_persons_entries_in_their_dm_and_in_a_session_of_no_project_only",
        "integration/test_entry_recall.py::test_an_own_entry_is_recalled_in_a_dm_and_a_session_and_in_no_room",
    ),
    "Over the API also a tool of theirs": (
        f"{RULES}::test_a_list_of_vendors_restricts_tools_and_the_bot_and_never_the_person",
    ),
    "shared with a team | also": (
        "integration/test_entry_routes.py::test_a_team_reads_what_its_members_share_and_their_tools_too",
    ),
    "A project can be *isolated*": (
        f"{MEMBERSHIP}::test_an_isolated_project_reads_nothing_from_outside_and_nothing_outside_reads_it",
    ),
    "When a private room is made public": (
        f"{MEMBERSHIP}::test_messages_of_a_private_room_stay_unreadable_after_it_becomes_public",
        f"{ROOMS}::test_of_a_room_its_present_generation_is_read_as_in_the_room",
    ),
    "and uses the answer for a minute": (
        "integration/test_memberships.py::test_what_a_platform_said_is_used_for_a_minute_and_for_nobody_else",
    ),
    "Without an answer, `/nexus rooms on`": (
        "integration/test_memberships.py::test_without_an_answer_nothing_private_is_read_and_that_is_said",
    ),
    "It is answered from in the room itself": (
        "integration/test_memberships.py::test_without_an_answer_nothing_private_is_read_and_that_is_said",
    ),
    "Commands begin with `/nexus`": (
        "integration/test_commands.py::test_a_command_line_is_split_into_its_name_and_text",
        "e2e/test_chat.py::test_lines_from_a_file_give_the_same_conversation",
    ),
    "One module, [composer/visibility.py]": (
        "unit/test_architecture.py::test_only_visibility_creates_a_readable_or_uses_its_seal",
    ),
    "It looks at who asks, where": (f"{RULES}::test_only_visibility_can_create_a_readable",),
    "Every query of memory takes one": (
        "unit/test_architecture.py::test_every_read_that_returns_text_takes_a_readable_or_is_listed_with_its_reason",
    ),
    "The rule runs inside each SQL statement": (
        "property/test_visibility.py::test_the_sql_predicate_equals_the_pure_one",
        "unit/test_architecture.py::test_the_layers_check_every_row_that_the_store_returns",
    ),
    "names the columns that it judges by": (
        "deep/integration/test_database_rights.py::test_one_tenant_reaches_nothing_of_another",
    ),
    "The tests build random worlds": (f"{WORLDS}::test_a_prompt_shows_what_the_rules_allow_and_nothing_else",),
    "Their question must lead to the same prompt": (
        f"{WORLDS}::test_worlds_that_differ_only_in_what_a_viewer_may_not_read_are_indistinguishable_to_them",
    ),
    "You can see, export and erase": (
        "integration/test_own_data.py::test_an_export_holds_all_that_is_the_persons_and_nothing_of_others",
        "integration/test_own_data.py::test_privacy_counts_by_place_and_says_who_reads",
        "integration/test_forget.py::test_forget_everything_leaves_no_trace_in_any_table_or_cache",
    ),
    "**Forgetting** a message": (
        "integration/test_forget.py::test_a_deletion_on_the_platform_erases_everything_derived_from_the_message",
    ),
    "An answer to it, or one that says what it said": (
        "integration/test_erasure_reach.py::test_what_was_answered_elsewhere_from_a_deleted_thread_is_retracted",
        "deep/integration/test_races.py::test_nothing_is_left_of_what_is_erased",
    ),
    "hold what was forgotten until they expire": (
        "deep/integration/test_backup.py::test_the_daily_backup_is_tested_and_old_backups_are_deleted",
    ),
    "When you opt out": (
        "integration/test_consent.py::test_the_messages_of_a_user_who_opted_out_are_answered_and_then_erased",
    ),
    "This is not forgetting": (
        "integration/test_consent.py::test_the_messages_of_a_user_who_opted_out_are_answered_and_then_erased",
    ),
    "stored once in the message log": (
        "integration/test_receive.py::test_a_message_received_many_times_at_once_is_stored_and_answered_once",
    ),
    "a **turn** is queued": ("integration/test_receive.py::test_one_turn_is_queued_for_each_addressed_agent",),
    "a reminder or a digest": (
        "deep/integration/test_reminders.py::test_a_reminder_for_oneself_is_posted_once_and_only_in_the_dm",
        "deep/integration/test_digests.py::test_the_day_before_is_posted_once_at_its_hour",
    ),
    "run in order, others side by side": (
        "unit/test_worker.py::test_one_persons_turns_stay_in_order_whatever_fails_in_between",
        "unit/test_worker.py::test_a_model_that_hangs_for_one_person_holds_up_their_own_questions_alone",
    ),
    "The **viewer** is resolved": (
        "integration/test_permissions.py::test_who_leaves_a_private_room_while_their_command_runs_does_nothing_there",
        f"{MEMBERSHIP}::test_a_person_who_leaves_a_private_room_reads_nothing_of_it",
    ),
    "makes the viewer's `Readable`": (f"{WORLDS}::test_a_prompt_shows_what_the_rules_allow_and_nothing_else",),
    "of memory are read, in this order": (
        "unit/test_prompt.py::test_every_prompt_has_the_same_sections_in_the_same_order",
    ),
    "working | the latest": (
        "integration/test_working_layer.py::test_forty_to_fifty_nine_messages_are_shown_and_the_first_moves_every_twenty",
    ),
    "episodic | summaries": ("deep/integration/test_jobs.py::test_every_tier_is_written_when_its_span_is_over",),
    "semantic | older messages": (
        "deep/integration/test_mem0.py::test_a_batch_gives_memories_with_kind_speaker_and_source_messages",
    ),
    "Found by meaning and by words": (
        "integration/test_recall.py::test_words_are_scored_by_bm25_over_the_readable_rows_alone",
        "integration/test_recall.py::test_meaning_is_scored_by_cosine_over_the_readable_rows_alone",
    ),
    "structured | *facts*": (
        "integration/test_commands.py::test_a_fact_keeps_its_exact_value_and_has_a_history",
        "integration/test_landmarks.py::test_a_decision_is_proposed_and_pinned_with_its_author_date_and_message",
    ),
    "Every fact and landmark that the viewer may read": (
        "unit/test_prompt.py::test_facts_and_landmarks_are_not_cut_where_they_fit_beside_the_message",
        "unit/test_prompt.py::test_when_cut_facts_and_landmarks_do_not_fit_the_newest_remain_and_a_note_counts_the_others",
    ),
    "at most 70% of the model's context window": (
        "unit/test_prompt.py::test_the_budget_is_seventy_percent_of_the_window_or_what_the_reply_leaves",
    ),
    "Every line carries a reference": (
        "deep/integration/test_relevance_floor.py::test_a_recalled_line_carries_its_mark_time_speaker_and_place",
        "unit/test_frame.py::test_the_prompt_has_exactly_our_sections_lines_and_marks",
    ),
    "(**compaction**)": (
        "integration/test_compaction.py::test_a_full_window_is_compacted_into_a_summary_and_the_log_stays",
    ),
    "Later turns use this summary again": (
        "integration/test_compaction.py::test_a_full_window_is_compacted_into_a_summary_and_the_log_stays",
    ),
    "streaming into the chat": ("e2e/test_discord.py::test_an_answer_is_shown_while_it_streams",),
    "It may call functions that search memory": (
        "integration/test_tools.py::test_recall_brings_what_the_asker_may_read_as_data_with_marks",
        "integration/test_tools.py::test_a_write_is_judged_when_it_is_made",
    ),
    "The answer is **stored** with its prompt": (
        "integration/test_replay.py::test_an_answer_is_composed_the_same_again_whatever_came_later",
        "unit/test_delivery.py::test_nobody_is_said_to_write_once_another_process_has_posted",
    ),
    "Even after a crash it is posted once": (
        "deep/e2e/test_adapter_kill.py::test_a_killed_discord_process_is_resumed_by_the_next",
        "deep/e2e/test_adapter_kill.py::test_a_killed_slack_process_is_resumed_by_the_next",
    ),
    "Later, in the background": (
        "integration/test_turns.py::test_a_message_posted_while_the_indexer_works_is_indexed_without_another_message",
    ),
}
# Words of a sentence that says what a word means, what to type or read, or what is measured (make bench-scale).
EXPLAINS = (
    "Self-hosted:",
    "You need Linux",
    "WSL), Python 3.11",
    "The first command that you run",
    "For answers in sentences",
    "What leaves your machine:",
    "From here on, `nexus` stands",
    "Nexus takes about 280 MB",
    "On two slow cores",
    "Step by step:",
    "[your message history](docs/import.md)",
    "Nexus is at version 0.1",
    "Run `nexus doctor` as the user",
    "[the commands for systemd",
    "| what was said or stored |",
    "This is sharing on purpose",
    "Whoever runs Nexus has its database",
    "An **adapter** (for Discord",
    "Steps 2 to 9 are",
    "A **worker** ([turn/worker.py]",
    "A viewer is three things",
    "| layer | holds |",
    "is the outline of steps 4 to 8",
)


def sentences() -> list[str]:
    """The sentences and the rows of tables of README, without what is typed and the list of pages at its end."""
    text = FENCE.sub("\n", (ROOT / "README.md").read_text(encoding="utf-8")).partition("## Read on")[0]
    found = []
    for block in BLOCK.split(text):
        line = " ".join(block.split())
        if not line.startswith("#"):
            found += [part for part in END.split(line) if re.search(r"[A-Za-z]", part)]
    return found


@cache
def _tests_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("sentence", sentences())
def test_every_sentence_is_proved_or_promises_nothing(sentence: str) -> None:
    assert any(words in sentence for words in (*PROMISES, *EXPLAINS)), "which test proves this?"


def test_every_test_that_is_named_exists() -> None:
    attacks = re.findall(r"`(\S+::\w+)`", (ROOT / "docs/testing.md").read_text(encoding="utf-8"))
    named = {*attacks, *(test for tests in PROMISES.values() for test in tests)}
    assert attacks
    assert not {test for test in named if test.partition("::")[2] not in _tests_in(test.partition("::")[0])}


def test_every_row_is_about_a_sentence_of_readme() -> None:
    assert all(PROMISES.values())
    assert not {words for words in (*PROMISES, *EXPLAINS) if sum(words in each for each in sentences()) != 1}
