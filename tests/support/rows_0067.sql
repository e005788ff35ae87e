-- Rows of a database at migration 0067, as pg_dump wrote them: those of the workspace acme, and one more in every table
-- of a tenant named synthetic.
SET session_replication_role = replica;
INSERT INTO tenants (tenant_id, slug, created_at) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'acme', '2026-05-04 09:00:00+00'),
	('00000000-0000-4000-8000-000000000001', 'synthetic', '2026-01-05 09:00:00+00');
INSERT INTO agents (tenant_id, id, slug, name) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'slug of agents', 'name of agents');
INSERT INTO users (tenant_id, id, name, admin, created_at, person_id, opted_out, reads_rooms, usage_erasures, import_id) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', 'alice', false, '2026-05-04 09:00:00+00', NULL, false, false, 0, NULL),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'name of users', true, '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', true, true, 7, '00000000-0000-4000-8000-000000000001');
INSERT INTO api_keys (tenant_id, id, user_id, vendor, name, prefix, digest, permissions, created_at, created_by, expires_at, revoked_at, last_used_at, client, redirect_uri) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'vendor of api_keys', 'name of api_keys', 'prefix of api_keys', NULL, '{a,b}', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 'client of api_keys', 'redirect_uri of api_keys');
INSERT INTO api_requests (tenant_id, credential, key_digest, digest, user_id, made, created_at) VALUES
	('00000000-0000-4000-8000-000000000001', 'credential of api_requests', '\x0102', '\x0102', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO app_codes (tenant_id, digest, key_id, challenge, redirect_uri, redirect_given, resource, expires_at) VALUES
	('00000000-0000-4000-8000-000000000001', '\x0102', '00000000-0000-4000-8000-000000000001', 'challenge of app_codes', 'redirect_uri of app_codes', true, 'resource of app_codes', '2026-01-05 09:00:00+00');
INSERT INTO app_tokens (tenant_id, id, key_id, resource, permissions, access_digest, access_expires_at, family_digest, refresh_digest, refresh_expires_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'resource of app_tokens', '{a,b}', '\x0102', '2026-01-05 09:00:00+00', '\x0102', '\x0102', '2026-01-05 09:00:00+00');
INSERT INTO audit_anchors (tenant_id, number, digest, cut_at, key_id, signature) VALUES
	('00000000-0000-4000-8000-000000000001', 7, '\x0102', '2026-01-05 09:00:00+00', 'key_id of audit_anchors', '\x0102');
INSERT INTO audit_events (tenant_id, id, at, act, actor_id, user_ids, conversation_id, project_id, details, key_id, signature) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', 'act of audit_events', '00000000-0000-4000-8000-000000000001', '{00000000-0000-4000-8000-000000000001}', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '{"a": 1}', 'key_id of audit_events', '\x0102');
INSERT INTO audit_seals (tenant_id, number, event_id, sealed_at, event_digest, before, key_id, signature) VALUES
	('00000000-0000-4000-8000-000000000001', 7, '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', '\x0102', '\x0102', 'key_id of audit_seals', '\x0102');
INSERT INTO audit_unsealed (tenant_id, id) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001');
INSERT INTO changes (tenant_id, subject, asked_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO commands (tenant_id, id, received_at, adapter, workspace, process, call, done) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', '88cdc49b-1e46-586c-948a-d6db144275fe', '2026-05-04 09:00:00+00', NULL, NULL, NULL, NULL, false),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', 'adapter of commands', 'workspace of commands', 7, '{"a": 1}', true);
INSERT INTO projects (tenant_id, id, slug, isolated, created_by, created_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'slug of projects', true, '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO conversations (tenant_id, id, kind, platform, workspace, name, namespace, generation, private, room_id, thread, user_id, agent_id, project_id, pooled, last_seq, version, created_at, title, recording, noticed_at, seen_id, seen_at, archived_at, notice_for, notice_id, outsiders, privacy_at, opened_at, private_since, outsiders_at, public_at, import_id, later_ids, history_changed_at, id_changed_at) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'e9058855-c8de-5331-8b64-4f6b0855f49d', 'room', 'console', 'acme', 'general', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', 0, false, NULL, NULL, NULL, NULL, NULL, false, 1, 1, '2026-05-04 09:00:00+00', NULL, 'on', '2026-05-04 09:00:00+00', NULL, NULL, NULL, NULL, '', false, NULL, NULL, NULL, NULL, NULL, NULL, '{}', NULL, NULL),
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'f52a5923-3de1-54a2-a6fb-159c2cd39eed', 'room', 'console', 'acme', 'random', 'room:f52a5923-3de1-54a2-a6fb-159c2cd39eed', 0, false, NULL, NULL, NULL, NULL, NULL, false, 1, 1, '2026-05-04 09:00:00+00', NULL, 'on', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, '{}', NULL, NULL),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'session', 'platform of conversations', 'workspace of conversations', 'name of conversations', 'session:00000000-0000-4000-8000-000000000001', 7, true, NULL, 'thread of conversations', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', true, 7, 7, '2026-01-05 09:00:00+00', 'title of conversations', 'on', '2026-01-05 09:00:00+00', 'seen_id of conversations', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 'notice_for of conversations', 'notice_id of conversations', true, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', '{a,b}', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO compactions (tenant_id, id, conversation_id, agent_id, namespace, user_id, visibility, through_at, through_seq, made_at, made_seq, messages, text, tokens, model, before_tokens, after_tokens, requested, created_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'namespace of compactions', '00000000-0000-4000-8000-000000000001', 'public', '2026-01-05 09:00:00+00', 7, '2026-01-05 09:00:00+00', 7, 7, 'text of compactions', 7, 'model of compactions', 7, 7, true, '2026-01-05 09:00:00+00');
INSERT INTO connections (tenant_id, id, platform, workspace, process) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'platform of connections', 'workspace of connections', 7);
INSERT INTO turns (tenant_id, id, conversation_id, message_id, agent_id, adapter, state, claimed_by, queued_at, answered_at, sent_at, reply_id, failure, model, prompt, timings_ms, counted_tokens, prompt_tokens, completion_tokens, cached_tokens, reused_tokens, prompt_expired) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'adapter of turns', 'sent', 7, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', 'failure of turns', 'model of turns', '{"a": 1}', '{"a": 1}', 7, 7, 7, 7, 7, true);
INSERT INTO deliveries (tenant_id, turn_id, part, external_id, sent_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 7, 'external_id of deliveries', '2026-01-05 09:00:00+00');
INSERT INTO digests (tenant_id, conversation_id, period, hour, due_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'daily', 9, '2026-01-05 09:00:00+00');
INSERT INTO messages (tenant_id, id, conversation_id, seq, external_id, at, user_id, agent_id, author, text, attachments, mentions, namespace, visibility, edited_at, indexed, ephemeral, reply_to, trust, skipped, import_id, edit_stated_at) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', '720f278e-7b18-5f1a-ba27-06eb50aa3743', 'e9058855-c8de-5331-8b64-4f6b0855f49d', 1, 'm1', '2026-05-04 09:00:00+00', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', NULL, 'alice', 'the vault opens with quokka7', '[]', '{}', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', 'public', NULL, false, false, NULL, 'member', NULL, NULL, NULL),
	('eda99649-91c1-500b-9d22-a22dcc958c02', '571c1d43-54a3-562d-b2ca-b2addb03ab1b', 'f52a5923-3de1-54a2-a6fb-159c2cd39eed', 1, 'm2', '2026-05-04 09:00:00+00', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', NULL, 'alice', 'nothing of note', '[]', '{}', 'room:f52a5923-3de1-54a2-a6fb-159c2cd39eed', 'public', NULL, false, false, NULL, 'member', NULL, NULL, NULL),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 7, 'external_id of messages', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'author of messages', 'text of messages', '{"a": 1}', '{00000000-0000-4000-8000-000000000001}', 'namespace of messages', 'public', '2026-01-05 09:00:00+00', true, true, 'reply_to of messages', 'member', 'skipped of messages', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO episodes (tenant_id, id, message_id) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001');
INSERT INTO erased (tenant_id, id, erased_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO extraction_batches (tenant_id, conversation_id, namespace, visibility, claim, claimed_until, attempts, due_at, parked_at, error) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'namespace of extraction_batches', 'visibility of extraction_batches', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', 7, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 'error of extraction_batches');
INSERT INTO extraction_queue (tenant_id, message_id, conversation_id, namespace, visibility, queued_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'namespace of extraction_queue', 'visibility of extraction_queue', '2026-01-05 09:00:00+00');
INSERT INTO facts (tenant_id, id, namespace, user_id, agent_id, visibility, key, value, author, origin, valid_from, valid_to, trust, set_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'namespace of facts', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'public', 'key of facts', '{"a": 1}', 'author of facts', 'origin of facts', '2026-01-05 09:00:00+00', NULL, 'member', '2026-01-05 09:00:00+00');
INSERT INTO gateway_exchanges (tenant_id, id, user_id, vendor, question, answer, said_at, learnt_at, claim, claimed_until, due_at, attempts) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'vendor of gateway_exchanges', 'question of gateway_exchanges', 'answer of gateway_exchanges', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 7);
INSERT INTO gateway_forgets (tenant_id, user_id, forgot_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO gateway_turns (tenant_id, user_id, vendor, digest, standing, recalled, created_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'vendor of gateway_turns', '\x0102', '{00000000-0000-4000-8000-000000000001}', '{00000000-0000-4000-8000-000000000001}', '2026-01-05 09:00:00+00');
INSERT INTO identities (tenant_id, platform, workspace, external_id, user_id, trust, trust_stated_at) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'console', 'acme', 'alice', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', NULL, NULL),
	('00000000-0000-4000-8000-000000000001', 'platform of identities', 'workspace of identities', 'external_id of identities', '00000000-0000-4000-8000-000000000001', 'member', '2026-01-05 09:00:00+00');
INSERT INTO imports (tenant_id, id, platform, workspace, source, begun_at, ended_at, undone_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'platform of imports', 'workspace of imports', 'source of imports', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO job_runs (name, due_at, state, attempts, started_at, ended_at, done, failed, note) VALUES
	('name of job_runs', '2026-01-05 09:00:00+00', 'running', 7, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 7, 7, 'note of job_runs');
INSERT INTO landmarks (tenant_id, id, namespace, user_id, agent_id, visibility, text, author, decided_at, replaces, retired_at, state, settled_by, trust) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', '782acade-dc1c-5752-8962-2f2c22ef0942', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', NULL, NULL, 'public', 'we ship on Fridays', 'alice', '2026-05-04 09:00:00+00', NULL, '2026-05-04 09:00:00+00', 'retired', NULL, 'member'),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'namespace of landmarks', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'public', 'text of landmarks', 'author of landmarks', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', 'proposed', 'settled_by of landmarks', 'member');
INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id) VALUES
	('00000000-0000-4000-8000-000000000001', 'item_kind of lineage', '00000000-0000-4000-8000-000000000001', 'source_kind of lineage', '00000000-0000-4000-8000-000000000001');
INSERT INTO link_codes (tenant_id, code_hash, user_id, expires_at) VALUES
	('00000000-0000-4000-8000-000000000001', 'code_hash of link_codes', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO login_links (tenant_id, user_id, digest, created_at, expires_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '\x0102', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO members (tenant_id, conversation_id, user_id, admin, joined_at, left_at, import_id) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'e9058855-c8de-5331-8b64-4f6b0855f49d', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', false, '2026-05-04 09:00:00+00', NULL, NULL),
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'f52a5923-3de1-54a2-a6fb-159c2cd39eed', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', false, '2026-05-04 09:00:00+00', NULL, NULL),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', true, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001');
INSERT INTO membership_readings (tenant_id, connection_id, room_id, read_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00');
INSERT INTO memories (tenant_id, id, namespace, user_id, agent_id, visibility, allowed_vendors, kind, key, text, author, origin, created_at, expires_at, superseded_by, trashed_at, valid_to, merged_into, trust, title, content, tags, metadata, session, updated_at, version, said_at) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', '9420d91f-26e9-5ec7-bea6-3cb661c6a620', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', NULL, 'public', '{*}', 'preference', NULL, 'I drink tea', 'alice', 'extracted', '2026-05-04 09:00:00+00', NULL, 'a1ef372e-e512-5fd9-886d-1710aba6d450', NULL, '2026-05-04 09:00:00+00', NULL, 'member', NULL, NULL, '{}', '{}', NULL, NULL, 1, NULL),
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'a1ef372e-e512-5fd9-886d-1710aba6d450', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', NULL, 'public', '{*}', 'preference', NULL, 'I drink cocoa', 'alice', 'extracted', '2026-05-04 09:00:00+00', NULL, NULL, NULL, NULL, NULL, 'member', NULL, NULL, '{}', '{}', NULL, NULL, 1, NULL),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'namespace of memories', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'public', '{a,b}', 'kind of memories', 'key of memories', 'text of memories', 'author of memories', 'origin of memories', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', NULL, 'member', 'title of memories', 'content of memories', '{a,b}', '{"a": 1}', 'session of memories', '2026-01-05 09:00:00+00', 7, '2026-01-05 09:00:00+00');
INSERT INTO model_usage (tenant_id, day, kind, agent_id, conversation_id, user_id, model, calls, failures, refused, estimated, prompt_tokens, completion_tokens, cached_tokens, unpriced_tokens, cost) VALUES
	('00000000-0000-4000-8000-000000000001', '2026-01-05', 'kind of model_usage', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'model of model_usage', 7, 7, 7, 7, 7, 7, 7, 7, 7);
INSERT INTO oauth_clients (id, name, redirect_uris, auth_method, secret_digest, created_at, used_at) VALUES
	('00000000-0000-4000-8000-000000000001', 'name of oauth_clients', '{a,b}', 'none', NULL, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO openid_logins (tenant_id, id, user_id, digest, issuer, name, created_at, last_used_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '\x0102', 'issuer of openid_logins', 'name of openid_logins', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO operation_totals (tenant_id, month, user_id, vendor, operation, count, tokens) VALUES
	('00000000-0000-4000-8000-000000000001', '2026-01-05', '00000000-0000-4000-8000-000000000001', 'vendor of operation_totals', 'operation of operation_totals', 7, 7);
INSERT INTO personal_settings (tenant_id, user_id, recall, strategy, budget, trash_days, keep_days, changed_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', true, 'hybrid', 100, 30, 30, '2026-01-05 09:00:00+00');
INSERT INTO posted_files (tenant_id, platform, workspace, external_id, user_id, due, sharing_until, refused_since, retry_at) VALUES
	('00000000-0000-4000-8000-000000000001', 'platform of posted_files', 'workspace of posted_files', 'external_id of posted_files', '00000000-0000-4000-8000-000000000001', true, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO project_members (tenant_id, project_id, user_id, role) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'read');
INSERT INTO quarantine (tenant_id, id, kind, item_id, namespace, user_id, visibility, trust, detail, text, author, origin, at, state, entry) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'memory', '00000000-0000-4000-8000-000000000001', 'namespace of quarantine', '00000000-0000-4000-8000-000000000001', 'public', 'member', 'detail of quarantine', 'text of quarantine', 'author of quarantine', 'origin of quarantine', '2026-01-05 09:00:00+00', 'pending', '{"a": 1}');
INSERT INTO quota_notices (tenant_id, month, quota, user_id, used, most, told_at) VALUES
	('00000000-0000-4000-8000-000000000001', '2026-01-05', 'quota of quota_notices', '00000000-0000-4000-8000-000000000001', 7, 7, '2026-01-05 09:00:00+00');
INSERT INTO recall_index (tenant_id, id, kind, namespace, user_id, visibility, vendors, at, expires_at, length, embedding) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', '9420d91f-26e9-5ec7-bea6-3cb661c6a620', 'memory', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', 'public', NULL, '2026-05-04 09:00:00+00', '2026-05-04 09:00:00+00', 1, NULL),
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'episode', 'namespace of recall_index', '00000000-0000-4000-8000-000000000001', 'visibility of recall_index', '{a,b}', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 7, '[0.1,-0.1,2,-2]');
INSERT INTO recall_terms (tenant_id, namespace, term, item_id, tf, length, visibility, user_id, vendors, at, expires_at) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', 'tea', '9420d91f-26e9-5ec7-bea6-3cb661c6a620', 1, 1, 'public', 'ff66bbfc-66b5-5e59-a16f-3b5641854075', NULL, '2026-05-04 09:00:00+00', '2026-05-04 09:00:00+00'),
	('00000000-0000-4000-8000-000000000001', 'namespace of recall_terms', 'term of recall_terms', '00000000-0000-4000-8000-000000000001', 7, 7, 'visibility of recall_terms', '00000000-0000-4000-8000-000000000001', '{a,b}', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO receipts (tenant_id, id, made_at, key, counts, digests) VALUES
	('00000000-0000-4000-8000-000000000001', 'id of receipts', '2026-01-05 09:00:00+00', '\x0102', '{"a": 1}', '{"\\x0102"}');
INSERT INTO reembedded (tenant_id, id, embedding) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '[0.1,-0.1,2,-2]');
INSERT INTO reminders (tenant_id, id, user_id, conversation_id, namespace, visibility, author, text, made_at, due_at, repeats, posted_at, state) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'namespace of reminders', 'public', 'author of reminders', 'text of reminders', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 'repeats of reminders', '2026-01-05 09:00:00+00', 'ended');
INSERT INTO retractions (tenant_id, platform, workspace, external_id, turn_id, kind, name, thread, private, message, user_external_id, part, since, refused_since, retry_at) VALUES
	('00000000-0000-4000-8000-000000000001', 'platform of retractions', 'workspace of retractions', 'external_id of retractions', '00000000-0000-4000-8000-000000000001', 'kind of retractions', 'name of retractions', 'thread of retractions', true, 'message of retractions', 'user_external_id of retractions', 7, '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES
	(1, 'spine', 'd57ff83698cddef4ad841eddc663dc2510e9189a9880eb6cc65e0af42173d780', '2026-11-28 07:19:16.332276+00'),
	(2, 'doors', '835618baab7775c2a440abef6ea47d7f3b2d3c53298212f44233959032fbcc2a', '2026-11-28 07:19:16.373121+00'),
	(3, 'doors_once', 'a0da67d9c07b76926648355f2895946b670b9c164001c94c01da06022be0e1d3', '2026-11-28 07:19:16.379127+00'),
	(4, 'compaction', '95c091906c5c9e1c8e4ef254dc5bf645f336ed6e887a1594cc870f84072900fc', '2026-11-28 07:19:16.381833+00'),
	(5, 'jobs', '4238609236951fc6bcd1b51527299e5bf5384028b810562a7311ca5dadfa93c3', '2026-11-28 07:19:16.385537+00'),
	(6, 'standing', '6694ae2acc4e5d44de3df765a33217ef50bdaf640da9d8c0480317354a50c96c', '2026-11-28 07:19:16.391988+00'),
	(7, 'reembed', '0b1f4ab66ebabee5c4acad2ce8eda4d4678b4f2299eadf715159e83d17d4dc02', '2026-11-28 07:19:16.396345+00'),
	(8, 'archived_threads', 'b70fdd07c67733e60415a85095b8a896d3229abaf03193560d9199ce25a3bfdb', '2026-11-28 07:19:16.398489+00'),
	(9, 'merging', '783cd136bf76a2e4382b864652e6fbb5a9f1bd1dee35ec22735d0ecce966dab2', '2026-11-28 07:19:16.399403+00'),
	(10, 'door_features', '8a2ce1cef6afdceaaaebef378bafd29696d97b32e4f5b761cb5c1a02a9d256a1', '2026-11-28 07:19:16.400633+00'),
	(11, 'rows_of_every_tenant', '7b0d109e73c2e275bc5143262f3f6bda261568678e9a40b9b973713eb27d88d7', '2026-11-28 07:19:16.403087+00'),
	(12, 'magnitudes', '14fdc3d2d29e44e2433e79fd398b694bd84b1d4ba04425ecde1d4f40a764873d', '2026-11-28 07:19:16.404215+00'),
	(13, 'erased', 'c4695600f2344f6b3e6234fc2ae9a941eb59236325368243923a6a8f13f93a49', '2026-11-28 07:19:16.408951+00'),
	(14, 'plain_words', '33c3b25c21a99d69c252b38c00643f5248fd39cabfe5c67de80a255d3b80cda9', '2026-11-28 07:19:16.410144+00'),
	(15, 'audit', '59124a9233f543a6b6bdfcfc7369b186dfd05c111326d1211ecafc72faf3fc63', '2026-11-28 07:19:16.412809+00'),
	(16, 'least_rights', 'd4532684bae49567ac560b674f9e2c6586795277fdb33696286b591cec272333', '2026-11-28 07:19:16.418588+00'),
	(17, 'forget', '4c69c4c7357b2701fd0d9964ee29012ebb1ba6b240b3b177b94ad30e916c8c34', '2026-11-28 07:19:16.422162+00'),
	(18, 'trust', '739cc1fb195ad237f8abaa53d267e24a8c4481e32cf4f4479799dfab36326afb', '2026-11-28 07:19:16.424509+00'),
	(19, 'outsiders', 'f583b8bfd3d60d13002d8aeff8a82ac440a7bcc85f68f12704cb72fd955f3cdc', '2026-11-28 07:19:16.42835+00'),
	(20, 'thread_titles', '78ee3abaa5f9c7905bac77dfaa854aa86ccd2029a4af28e0cbbff8234f54e3ee', '2026-11-28 07:19:16.429441+00'),
	(21, 'privacy_since', '95a91655699f2b8425129b1afa7d5fb45077035119d76cbd378ab488f50bbb40', '2026-11-28 07:19:16.430337+00'),
	(22, 'private_since', '25e8ca334c79c70f953539e133408f661aa39f45357546145d7b000cf399a3e1', '2026-11-28 07:19:16.431298+00'),
	(23, 'access', '4562b3e452658978dbfb6aff536cae085ba5477a35cd8d848fa683dd70bf6a1b', '2026-11-28 07:19:16.432067+00'),
	(24, 'growth', 'd4a670d0714eb0370020efba11190ad65a2a371041a2dbad970ec46a0384e86d', '2026-11-28 07:19:16.433393+00'),
	(25, 'skipped', 'e6e977aef33a3682a671ff0391e4f6393366f464362126fbf47ba9ca925c0def', '2026-11-28 07:19:16.437362+00'),
	(26, 'outsiders_since', '6a18906792a761a22d4913f67f11267c03b0e3e9757db1be323182061aee8641', '2026-11-28 07:19:16.438499+00'),
	(27, 'public_at', 'a20d55734dc92e30ec75dce161beb56640790c3e947a260e74da311718ecde6c', '2026-11-28 07:19:16.439399+00'),
	(28, 'model_usage', '392351caecf42de542e645c028ea84c5e386e634f1fc39bb21f6f225057381cf', '2026-11-28 07:19:16.440165+00'),
	(29, 'rooms_in_dms', '280c8b2e7ce22fd1b0901275dc6faec52528876534a1975521372ebe47c4d41d', '2026-11-28 07:19:16.443302+00'),
	(30, 'job_runs_due_at', 'c86c32729d2c7db14cf6af93c1c002a2899ee6e9bc18422b7fe5f7ec5a831a20', '2026-11-28 07:19:16.444734+00'),
	(31, 'planner_statistics', '51c69f683310bafebee2cad0aa4f49927d02f119a8681a28e356297b44f29d0a', '2026-11-28 07:19:16.445483+00'),
	(32, 'reminders', '33465e9d830774659e60931fc3a0cfdd6f65d3d4271be7cb711c70ea43616ec7', '2026-11-28 07:19:16.446421+00'),
	(33, 'membership_readings', 'b4b69ba876be069c7592873c320f2215cfc2689da09367ea3272bc934df61169', '2026-11-28 07:19:16.449513+00'),
	(34, 'digests', '8600fb226285918654145a9497953bdaa3fbae47bef3807df7c576db1ec04368', '2026-11-28 07:19:16.453352+00'),
	(35, 'usage_reservations', '264af81544b5169d5b7ec0a1d0cc98714aea7401db840f1edeaceabc04417b98', '2026-11-28 07:19:16.456015+00'),
	(36, 'reservations_rights', 'e7c2493b6828fdcb62f799547c0974d125448422eca86c4a61ebf4d16ed99480', '2026-11-28 07:19:16.458112+00'),
	(37, 'refused_reminders', '4345d3e9160617e3dc423dadbe8dff780c5184a65b4048539b931c41b487e1fc', '2026-11-28 07:19:16.458905+00'),
	(38, 'usage_standing', '6d403332224f016384992ab54f5287f729f7e6785538e1631a004456303886b2', '2026-11-28 07:19:16.460203+00'),
	(39, 'imports', 'fe89e4e90e03196917ffe76f09291a022ce2a36d244991bb6df444decd24819e', '2026-11-28 07:19:16.461473+00'),
	(40, 'voice_notes', '7d4970b224c3ab266bc1a00cb5c8137f6a40b8da3e4f1684d208fbf410332e30', '2026-11-28 07:19:16.465236+00'),
	(41, 'posted_files', 'e976dbc42acc4cb5f3cd0a41d9ff21c42c563c3bc2166ae2a023ab1e75b8ea47', '2026-11-28 07:19:16.46731+00'),
	(42, 'unshared_files', '69db31835d40709c6c7093f532c0e2417a06de6e6b1b07609ca1766f16d24a6f', '2026-11-28 07:19:16.469752+00'),
	(43, 'entries_of_tools', '19a992e94cd1c04af2f93e9f5790ba120cd67d4ea0189c4f0ad3ed27863e75ad', '2026-11-28 07:19:16.4706+00'),
	(44, 'api_requests', 'a575357bba0df33b6408463af8e91a6659a60e7c770c617f55d8d0ef146acf6a', '2026-11-28 07:19:16.472042+00'),
	(45, 'credentials', '55a0232ade8640be524e965cf513397b81d04bfcc205d79c8ba87d2c0d152bb7', '2026-11-28 07:19:16.47436+00'),
	(46, 'entries', '344640580b6eec1b3bc212937c2bca5df6c8920e90885978e54a4e1c275cc2ba', '2026-11-28 07:19:16.479722+00'),
	(47, 'plans', '13c7abd5575f354a4cab1afab28c1ea9e93db779f46cd2781ea836037e9b4c98', '2026-11-28 07:19:16.485093+00'),
	(48, 'managed', 'c16804c4167c4337eb7ff43a293e806ad524f29d4575cd7c6c2f69ce38b8c19d', '2026-11-28 07:19:16.492135+00'),
	(49, 'openid_logins', 'c4ad1b16c0c54605ac766bd5154dd4d7bb1ab89a326ebbab2feccb225a72a603', '2026-11-28 07:19:16.493738+00'),
	(50, 'metadata_as_sent', '80771a4d40413f58b9e17edb6855442c98bae85a28bcd6605196202ba9d13a2f', '2026-11-28 07:19:16.496495+00'),
	(51, 'gateway_turns', '6178faf2b06b7765ff509a4ee8ef9f769dd5102f79ea6daf2c8629b355de1b78', '2026-11-28 07:19:16.502581+00'),
	(52, 'gateway_exchanges', '27705494e690d5ea4b6de49314b2563fb8307d16cc920e196c60b5f04e2e286d', '2026-11-28 07:19:16.50499+00'),
	(53, 'connected_apps', '0c9ce1353c60a14710da6f603820660c2a747fd9527634f5e0865ed4d81670fc', '2026-11-28 07:19:16.507856+00'),
	(54, 'edits_stated', 'b05a23223c7f7e2ae08d2838f522afabbb97b7c5437c3c50fa03d2c9855ccb9c', '2026-11-28 07:19:16.512843+00'),
	(55, 'gateway_forgets', '12ce4e504fd568494a5584291d5fa2891cb93bfb40edfd4123523309b56a4f70', '2026-11-28 07:19:16.513832+00'),
	(56, 'changes', '272937b7363fab307b6bef04e6de62a79aa580982916913a7b1342073ebae88a', '2026-11-28 07:19:16.515411+00'),
	(57, 'trust_stated', '28c19e0807a5dab5b40f2b2e261a09cd992ca0ee91a28bc43d825eabbcea9bc4', '2026-11-28 07:19:16.516896+00'),
	(58, 'fact_set_at', 'dd5baf187b3773df61cce20bbd3fbaaa20e78f3511ada9d2eab277d3b1e85f1a', '2026-11-28 07:19:16.51757+00'),
	(59, 'retractions_again', 'd25253b22c83c84b5a596248b7bbcef927f862e43777b694b3a0eaea42dff183', '2026-11-28 07:19:16.518178+00'),
	(60, 'channel_ids', '43baeb2b32c520426bcdba427729bf081f5831a9f4e3ea7d3a366c784adeee83', '2026-11-28 07:19:16.519137+00'),
	(61, 'facts_set_before', '311b502522a3c306d22c5c6bac31584b017bb3ff94b513e76d26dc83812733e1', '2026-11-28 07:19:16.520416+00'),
	(62, 'history_changed', '649425ed3e6ed18bc2821c9e94e73af480b0042e50286a269579d5bd1a8740a4', '2026-11-28 07:19:16.521304+00'),
	(63, 'entry_said_at', '3a5d54948d1f6f0001819aaeca044de18e1c5bfb6c56126d9f5d9d20fff66c34', '2026-11-28 07:19:16.521955+00'),
	(64, 'undone_beside_messages', '2c8098307f52140901beae32e639f7a5e928720467328e83b57306f0123a2556', '2026-11-28 07:19:16.522654+00'),
	(65, 'id_changed_at', '5b0f5c9b0eb9c6b42858d41ee77016f647765842a2fbcbf2ae7af940bd9f9b31', '2026-11-28 07:19:16.523651+00'),
	(66, 'deleted_again', '873948b5667bd594a6e5a71b303b9a19d7b78f84d2a21fd11bc849df23812cc6', '2026-11-28 07:19:16.524357+00'),
	(67, 'history_unread', '6107f10dc806160eee16b096dbdfd11fafb73ed821c7295861f2a48ec56e20ef', '2026-11-28 07:19:16.525069+00');
INSERT INTO settings (tenant_id, key, value, updated_at) VALUES
	('00000000-0000-4000-8000-000000000001', 'key of settings', '{"a": 1}', '2026-01-05 09:00:00+00');
INSERT INTO summaries (tenant_id, id, conversation_id, tier, namespace, user_id, agent_id, visibility, starts_at, ends_at, text, tokens, model, created_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'thread', 'namespace of summaries', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'public', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 'text of summaries', 7, 'model of summaries', '2026-01-05 09:00:00+00');
INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'day', 'e9058855-c8de-5331-8b64-4f6b0855f49d', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', '2026-05-04 09:00:00+00'),
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'day', 'f52a5923-3de1-54a2-a6fb-159c2cd39eed', 'room:f52a5923-3de1-54a2-a6fb-159c2cd39eed', '2026-05-04 09:00:00+00'),
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'session', 'e9058855-c8de-5331-8b64-4f6b0855f49d', 'room:e9058855-c8de-5331-8b64-4f6b0855f49d', '2026-05-04 09:00:00+00'),
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'session', 'f52a5923-3de1-54a2-a6fb-159c2cd39eed', 'room:f52a5923-3de1-54a2-a6fb-159c2cd39eed', '2026-05-04 09:00:00+00'),
	('00000000-0000-4000-8000-000000000001', 'thread', '00000000-0000-4000-8000-000000000001', 'namespace of summaries_due', '2026-01-05 09:00:00+00');
INSERT INTO teams (tenant_id, id, name, created_at, created_by) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'name of teams', '2026-01-05 09:00:00+00', '00000000-0000-4000-8000-000000000001');
INSERT INTO team_invites (tenant_id, id, team_id, user_id, created_by, created_at, expires_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
INSERT INTO team_members (tenant_id, team_id, user_id, role, joined_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'member', '2026-01-05 09:00:00+00');
INSERT INTO usage_reservations (tenant_id, id, kind, agent, tokens, cost, expires_at) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'kind of usage_reservations', 'agent of usage_reservations', 7, 7, '2026-01-05 09:00:00+00');
INSERT INTO voice_notes (tenant_id, message_id, adapter, claimed_by, tries) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'adapter of voice_notes', 7, 7);
INSERT INTO web_sessions (tenant_id, id, user_id, digest, created_at, expires_at, last_used_at, browser) VALUES
	('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', '\x0102', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00', 'browser of web_sessions');
INSERT INTO workspaces (tenant_id, platform, workspace, created_at, history_unread_since) VALUES
	('eda99649-91c1-500b-9d22-a22dcc958c02', 'console', 'acme', '2026-05-04 09:00:00+00', NULL),
	('00000000-0000-4000-8000-000000000001', 'platform of workspaces', 'workspace of workspaces', '2026-01-05 09:00:00+00', '2026-01-05 09:00:00+00');
