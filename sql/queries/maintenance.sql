-- name: memories_expired
-- List expired memories that people or tools wrote. Extracted ones are only hidden from recall: they remain as history,
-- and what they superseded must not become current again.
SELECT id FROM memories WHERE tenant_id = :tenant_id AND expires_at <= :now AND origin <> 'extracted'
ORDER BY expires_at, id LIMIT :limit

-- name: memories_to_purge
-- List memories that have been in the trash for as many days as their person has set, else for `days`; then entries that tools
-- wrote for their person alone, and that are older than that person keeps such entries.
(SELECT m.id FROM memories AS m
LEFT JOIN LATERAL (
    SELECT (o.settings ->> 'trash_days')::int AS trash_days FROM users AS u
    JOIN users AS o ON o.tenant_id = :tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    WHERE u.tenant_id = :tenant_id AND u.id = m.user_id AND o.settings IS NOT NULL
    ORDER BY o.settings_at DESC, o.id LIMIT 1
) AS own ON true
WHERE m.tenant_id = :tenant_id AND m.trashed_at <= :now::timestamptz - make_interval(days => coalesce(own.trash_days, :days))
ORDER BY m.trashed_at, m.id LIMIT :limit)
UNION
(SELECT m.id
FROM (
    SELECT DISTINCT ON (coalesce(u.person_id, u.id)) coalesce(u.person_id, u.id) AS person,
           (u.settings ->> 'keep_days')::int AS keep_days
    FROM users AS u
    WHERE u.tenant_id = :tenant_id AND u.settings IS NOT NULL
    ORDER BY coalesce(u.person_id, u.id), u.settings_at DESC, u.id
) AS own
JOIN users AS u ON u.tenant_id = :tenant_id AND coalesce(u.person_id, u.id) = own.person
JOIN memories AS m ON m.tenant_id = :tenant_id AND m.namespace = 'entries:' || u.id AND m.user_id = u.id
WHERE own.keep_days IS NOT NULL AND m.origin NOT IN ('api', 'extracted')
      AND coalesce(m.updated_at, m.created_at) <= :now::timestamptz - make_interval(days => own.keep_days)
ORDER BY m.created_at, m.id LIMIT :limit)
LIMIT :limit

-- name: messages_count_before
-- Count messages from before a time.
SELECT count(*) FROM messages WHERE tenant_id = :tenant_id AND at < :before

-- name: messages_before
-- List messages from before a time, for retention.
SELECT id FROM messages WHERE tenant_id = :tenant_id AND at < :before ORDER BY at, id LIMIT :limit

-- name: expired_delete
-- Delete what opens nothing any more (codes, links, web sessions, tokens, invitations; of those to projects, of declined ones, and of
-- keys, what ended before `invites_before`, `declined_before` and `keys_before`),
-- requests that are not known any more, what tools read, what all webhooks were told of, and what the gateway noted before a time: what it put into requests, and exchanges
-- with what else was noted of them, also attempts at exchanges of which none are left.
WITH code AS (DELETE FROM one_time_codes WHERE tenant_id = :tenant_id AND expires_at <= :now),
     invite AS (DELETE FROM invites WHERE tenant_id = :tenant_id AND 
         expires_at <= CASE WHEN declined THEN :declined_before WHEN project_id IS NULL THEN :now ELSE :invites_before END),
     session AS (DELETE FROM web_sessions WHERE tenant_id = :tenant_id AND expires_at <= :now),
     app_token AS (DELETE FROM app_tokens WHERE tenant_id = :tenant_id AND refresh_expires_at <= :now),
     key AS (DELETE FROM api_keys WHERE tenant_id = :tenant_id AND least(revoked_at, expires_at) < :keys_before),
     request AS (DELETE FROM requests WHERE tenant_id = :tenant_id AND expires_at <= :now),
     turn AS (DELETE FROM gateway_turns WHERE tenant_id = :tenant_id AND created_at < :turns_before),
     read AS (DELETE FROM tool_reads WHERE tenant_id = :tenant_id AND at < :reads_before),
     told AS (DELETE FROM webhook_changes WHERE tenant_id = :tenant_id AND xact < coalesce(
                  (SELECT told_before FROM webhooks WHERE tenant_id = :tenant_id AND off_at IS NULL ORDER BY told_before LIMIT 1),
                  pg_snapshot_xmin(pg_current_snapshot()))),
     forgotten AS (UPDATE users SET forgot_at = NULL WHERE tenant_id = :tenant_id AND forgot_at < :exchanges_before),
     attempt AS (DELETE FROM learning_batches AS b
                 WHERE b.tenant_id = :tenant_id AND b.user_id IS NOT NULL AND b.conversation_id IS NULL AND NOT EXISTS (
                     SELECT FROM gateway_exchanges AS e WHERE e.tenant_id = :tenant_id AND e.user_id = b.user_id
                         AND e.learnt_at IS NULL AND e.said_at >= :exchanges_before))
DELETE FROM gateway_exchanges WHERE tenant_id = :tenant_id AND said_at < :exchanges_before

-- name: prompts_expire
-- Empty the stored prompts of answers from before a time.
UPDATE turns SET prompt = NULL, prompt_expired = true
WHERE tenant_id = :tenant_id AND id IN (
    SELECT id FROM turns WHERE tenant_id = :tenant_id AND prompt IS NOT NULL AND answered_at < :before
    ORDER BY answered_at LIMIT :limit
)
RETURNING id

-- name: columns_with_ids
-- List the columns of tenants' tables that may hold an id: as a value, in a list or within a text. sampled: the planner's
-- statistics hold words of it (an owner that row-level security binds is not shown that).
SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, NULL) AS "type",
       holds_words(a.attname, a.atttypid)
       AND EXISTS (SELECT FROM pg_stats AS s
                   WHERE (s.schemaname, s.tablename, s.attname) = ('public', c.relname, a.attname)) AS sampled
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attname <> 'tenant_id'
      AND format_type(a.atttypid, NULL) IN ('uuid', 'uuid[]', 'text', 'text[]', 'jsonb', 'json')
      AND EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
ORDER BY c.relname, a.attname

-- name: backlog
-- Count messages to index, items to embed, messages that wait for extraction and scopes whose extraction is parked, with
-- the last error of these.
SELECT (SELECT count(*) FROM messages WHERE tenant_id = :tenant_id AND NOT indexed) AS unindexed,
       (SELECT count(*) FROM recall_index WHERE tenant_id = :tenant_id AND embedding IS NULL) AS unembedded,
       (SELECT count(*) FROM extraction_queue WHERE tenant_id = :tenant_id) AS unextracted,
       (SELECT count(*) FROM learning_batches WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL) AS parked,
       coalesce((SELECT error FROM learning_batches WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL
           ORDER BY parked_at DESC LIMIT 1), '') AS why
