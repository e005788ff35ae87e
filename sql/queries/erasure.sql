-- name: erase_messages
-- Delete messages, with their episodes, and the queued turns that they asked for. Returns the conversation of each message, and
-- NULL for each turn.
WITH turn AS (
    DELETE FROM turns WHERE tenant_id = :tenant_id AND message_id = ANY (:ids::uuid[]) AND state = 'queued' RETURNING id
), message AS (
    DELETE FROM messages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) RETURNING conversation_id
)
SELECT conversation_id FROM message UNION ALL SELECT NULL FROM turn

-- name: tombstones_insert
-- Record erased ids, so that an erased message is not stored again and an answer that is being made from it is not
-- sent; or a room or thread that its platform deleted, with when it did so: of several times, the latest.
INSERT INTO erased (tenant_id, id, erased_at) SELECT :tenant_id, id, :at FROM unnest(:ids::uuid[]) AS id
ON CONFLICT (tenant_id, id) DO UPDATE SET erased_at = excluded.erased_at WHERE erased.erased_at < excluded.erased_at

-- name: places_deleted_unerased
-- List the rooms and threads of a workspace that its platform deleted, and in which something is left that was said or
-- stored there before.
WITH deleted AS MATERIALIZED (
    SELECT c.id, c.kind, c.name, c.thread, split_part(c.namespace, '.', 1) AS base_namespace, e.erased_at
    FROM conversations AS c JOIN erased AS e ON e.tenant_id = :tenant_id AND e.id = c.id
    WHERE c.tenant_id = :tenant_id AND c.platform = :platform AND c.workspace = :workspace
), items (namespace, at) AS (
    SELECT namespace, coalesce(said_at, created_at) FROM memories WHERE tenant_id = :tenant_id
    UNION ALL SELECT namespace, coalesce(set_at, valid_from) FROM facts WHERE tenant_id = :tenant_id
    UNION ALL SELECT namespace, decided_at FROM landmarks WHERE tenant_id = :tenant_id
    UNION ALL SELECT namespace, at FROM quarantine WHERE tenant_id = :tenant_id
    UNION ALL SELECT namespace, made_at FROM reminders WHERE tenant_id = :tenant_id
)
SELECT d.name, d.thread FROM deleted AS d
WHERE EXISTS (SELECT FROM conversations AS c JOIN messages AS m ON m.tenant_id = :tenant_id AND m.conversation_id = c.id
              WHERE c.tenant_id = :tenant_id AND (c.id = d.id OR c.room_id = d.id) AND m.agent_id IS NULL
                    AND m.at <= d.erased_at)
UNION
SELECT d.name, d.thread FROM items AS i
JOIN deleted AS d ON d.kind <> 'thread' AND d.base_namespace = split_part(i.namespace, '.', 1) AND i.at <= d.erased_at

-- name: erase_items
-- Delete items, each by its kind, and return those that were there. The next turn makes compactions again from the remaining
-- messages, the summary job summaries.
WITH item AS MATERIALIZED (
    SELECT kind, id FROM unnest(:kinds::text[], :ids::uuid[]) AS item (kind, id)
), memory AS (
    DELETE FROM memories
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM item WHERE kind = 'memory')) RETURNING id
), fact AS (
    DELETE FROM facts WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM item WHERE kind = 'fact')) RETURNING id
), landmark AS (
    DELETE FROM landmarks
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM item WHERE kind = 'landmark')) RETURNING id
), pending AS (
    DELETE FROM quarantine
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM item WHERE kind = 'pending')) RETURNING id
), reminder AS (
    DELETE FROM reminders
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM item WHERE kind = 'reminder')) RETURNING id
), summary AS (
    DELETE FROM summaries
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM item WHERE kind = 'summary')) RETURNING id
), compaction AS (
    DELETE FROM compactions
    WHERE tenant_id = :tenant_id AND id = ANY (ARRAY(SELECT id FROM item WHERE kind = 'compaction')) RETURNING id
)
SELECT 'memory' AS kind, id FROM memory UNION ALL SELECT 'fact', id FROM fact UNION ALL SELECT 'landmark', id FROM landmark
UNION ALL SELECT 'pending', id FROM pending UNION ALL SELECT 'reminder', id FROM reminder
UNION ALL SELECT 'summary', id FROM summary UNION ALL SELECT 'compaction', id FROM compaction

-- name: erase_people
-- Delete what people have set for themselves, their time zones, what their tools read, and what the gateway keeps of them: what it put
-- into requests, and what is to be learnt from their tools, also by an attempt that goes on. Projects and teams that they made, and that nobody else is in
-- (a project has no room either), lose their names.
WITH own AS (UPDATE users SET settings = NULL, settings_at = NULL
             WHERE tenant_id = :tenant_id AND id = ANY (:user_ids::uuid[]) AND settings IS NOT NULL),
     zone AS (UPDATE identities SET timezone = NULL WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
              AND timezone IS NOT NULL),
     project AS (UPDATE projects AS p SET slug = :unnamed
                 WHERE p.tenant_id = :tenant_id AND p.created_by = ANY (:user_ids::uuid[])
                       AND NOT EXISTS (SELECT FROM project_members AS m WHERE m.tenant_id = :tenant_id AND m.project_id = p.id
                                       AND NOT m.user_id = ANY (:user_ids::uuid[]))
                       AND NOT EXISTS (SELECT FROM conversations AS c WHERE c.tenant_id = :tenant_id AND c.project_id = p.id
                                       AND c.kind = 'room')),
     team AS (UPDATE teams AS t SET name = :unnamed
              WHERE t.tenant_id = :tenant_id AND t.created_by = ANY (:user_ids::uuid[])
                    AND NOT EXISTS (SELECT FROM team_members AS m WHERE m.tenant_id = :tenant_id AND m.team_id = t.id
                                    AND NOT m.user_id = ANY (:user_ids::uuid[]))),
     turn AS (DELETE FROM gateway_turns WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])),
     read AS (DELETE FROM tool_reads WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])),
     attempt AS (DELETE FROM learning_batches WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]))
DELETE FROM gateway_exchanges WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])

-- name: erase_prompts
-- Clear the stored prompts of these turns and of those that answered these messages. The turns themselves remain.
UPDATE turns SET prompt = NULL
WHERE tenant_id = :tenant_id AND (id = ANY (:turn_ids::uuid[]) OR message_id = ANY (:message_ids::uuid[]))
      AND prompt IS NOT NULL
RETURNING conversation_id

-- name: replies_find
-- Find the answers of these turns, and those to these messages.
SELECT m.id, t.id AS turn_id, m.conversation_id, t.message_id AS question_id, m.text FROM turns AS t
JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.reply_id
WHERE t.tenant_id = :tenant_id AND (t.id = ANY (:turn_ids::uuid[]) OR t.message_id = ANY (:message_ids::uuid[]))

-- name: erase_replace_text
-- Replace the text of answers. They keep their place in the conversation.
UPDATE messages SET text = :text WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: erasure_texts
-- Get the texts of messages (with the names and texts of their attachments), of episodes (those of their messages) and
-- of items, to find answers that repeat them. `json` is what of it is JSON text.
SELECT s.id, m.author, m.conversation_id,
       m.text || ARRAY(SELECT concat_ws(' ', a ->> 'name', a ->> 'text')
                       FROM jsonb_array_elements(m.attachments) AS a) AS parts, NULL AS json
FROM (SELECT id, id AS message_id FROM unnest(:ids::uuid[]) AS id
      UNION ALL
      SELECT e.id, e.message_id FROM episodes AS e WHERE e.tenant_id = :tenant_id AND e.id = ANY (:ids::uuid[])) AS s
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = s.message_id
UNION ALL
SELECT id, author, NULL, array_remove(ARRAY[text, title, content, key, session] || tags, NULL),
       nullif(metadata::text, '{}')
FROM memories WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, author, NULL, ARRAY[key], value::text FROM facts WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, author, NULL, ARRAY[text], NULL FROM landmarks WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, author, NULL, ARRAY[detail, text], coalesce(entry::text, CASE WHEN kind = 'fact' THEN nullif(text, '') END)
FROM quarantine WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, author, NULL, ARRAY[text], NULL FROM reminders WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, '', NULL, ARRAY[text], NULL FROM summaries WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, '', NULL, ARRAY[text], NULL FROM compactions WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: prompts_summaries
-- Get the summaries in stored prompts.
SELECT t.id, s ->> 'text' AS text
FROM turns AS t CROSS JOIN LATERAL jsonb_array_elements(t.prompt -> 'sections') AS s
WHERE t.tenant_id = :tenant_id AND t.id = ANY (:turn_ids::uuid[]) AND s ->> 'name' = 'SUMMARIES'

-- name: erasable_select
-- Select people's messages and their other items: of some users (NULL: everyone), in a conversation with its threads or
-- in a project with its conversations (both NULL: everywhere), within some time. A room's items are taken from every
-- generation of its namespace; those of a thread are its room's. A DM that has chosen a project is not part of it. A fact
-- counts from when it was set, an entry from when all that it says was written.
WITH places AS (
    SELECT c.id, c.kind, split_part(c.namespace, '.', 1) AS base_namespace
    FROM conversations AS c LEFT JOIN conversations AS r ON r.tenant_id = :tenant_id AND r.id = c.room_id
    WHERE c.tenant_id = :tenant_id
          AND (c.id = :conversation_id OR c.room_id = :conversation_id
               OR c.kind <> 'dm' AND coalesce(r.project_id, c.project_id) = :project_id)
), base_namespaces AS (
    SELECT base_namespace FROM places WHERE kind <> 'thread'
    UNION ALL
    SELECT 'project:' || :project_id::uuid::text WHERE :project_id::uuid IS NOT NULL
), items (kind, id, user_id, namespace, at) AS (
    SELECT 'memory', id, user_id, namespace, coalesce(said_at, created_at) FROM memories WHERE tenant_id = :tenant_id
    UNION ALL SELECT 'fact', id, user_id, namespace, coalesce(set_at, valid_from) FROM facts WHERE tenant_id = :tenant_id
    UNION ALL SELECT 'landmark', id, user_id, namespace, decided_at FROM landmarks WHERE tenant_id = :tenant_id
    UNION ALL SELECT 'pending', id, user_id, namespace, at FROM quarantine WHERE tenant_id = :tenant_id
    UNION ALL SELECT 'reminder', id, user_id, namespace, made_at FROM reminders WHERE tenant_id = :tenant_id
)
SELECT 'message' AS kind, m.id FROM messages AS m
WHERE m.tenant_id = :tenant_id AND m.agent_id IS NULL
      AND (:user_ids::uuid[] IS NULL OR m.user_id = ANY (:user_ids))
      AND (coalesce(:conversation_id::uuid, :project_id::uuid) IS NULL OR m.conversation_id IN (SELECT id FROM places))
      AND m.at >= coalesce(:since::timestamptz, '-infinity') AND m.at <= coalesce(:until::timestamptz, 'infinity')
UNION ALL
SELECT i.kind, i.id FROM items AS i
WHERE (:user_ids::uuid[] IS NULL OR i.user_id = ANY (:user_ids))
      AND (coalesce(:conversation_id::uuid, :project_id::uuid) IS NULL
           OR split_part(i.namespace, '.', 1) IN (SELECT base_namespace FROM base_namespaces))
      AND i.at >= coalesce(:since::timestamptz, '-infinity') AND i.at <= coalesce(:until::timestamptz, 'infinity')

-- name: erasable_authors
-- Find the users whose messages and other items these are.
WITH authors AS (
    SELECT user_id FROM messages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
    UNION SELECT user_id FROM memories WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
    UNION SELECT user_id FROM facts WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
    UNION SELECT user_id FROM landmarks WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
    UNION SELECT user_id FROM quarantine WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
    UNION SELECT user_id FROM reminders WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
)
SELECT user_id FROM authors WHERE user_id IS NOT NULL

-- name: erasable_texts
-- Get the texts of what a user said or stored whose ids are from `first` to `last`, by id. Each part has its own limit, so
-- that it is read in the order of its index, and a page costs as much as its rows. `json` is what of a text is JSON text.
SELECT kind, id, parts, json FROM (
    (SELECT 'message' AS kind, id,
            text || ARRAY(SELECT concat_ws(' ', a ->> 'name', a ->> 'text') FROM jsonb_array_elements(attachments) AS a)
                AS parts, NULL AS json
     FROM messages
     WHERE tenant_id = :tenant_id AND user_id = :user_id AND agent_id IS NULL AND id BETWEEN :first AND :last
     ORDER BY id LIMIT :limit)
    UNION ALL
    (SELECT 'memory', id, array_remove(ARRAY[text, title, content, key, session] || tags, NULL),
            nullif(metadata::text, '{}')
     FROM memories
     WHERE tenant_id = :tenant_id AND user_id = :user_id AND id BETWEEN :first AND :last ORDER BY id LIMIT :limit)
    UNION ALL
    (SELECT 'fact', id, ARRAY[key, value #>> '{}'], value::text FROM facts
     WHERE tenant_id = :tenant_id AND user_id = :user_id AND id BETWEEN :first AND :last ORDER BY id LIMIT :limit)
    UNION ALL
    (SELECT 'landmark', id, ARRAY[text], NULL FROM landmarks
     WHERE tenant_id = :tenant_id AND user_id = :user_id AND id BETWEEN :first AND :last ORDER BY id LIMIT :limit)
    UNION ALL
    (SELECT 'pending', id, ARRAY[detail, text],
            coalesce(entry::text, CASE WHEN kind = 'fact' THEN nullif(text, '') END)
     FROM quarantine
     WHERE tenant_id = :tenant_id AND user_id = :user_id AND id BETWEEN :first AND :last ORDER BY id LIMIT :limit)
    UNION ALL
    (SELECT 'reminder', id, ARRAY[text], NULL FROM reminders
     WHERE tenant_id = :tenant_id AND user_id = :user_id AND id BETWEEN :first AND :last ORDER BY id LIMIT :limit)
) AS own
ORDER BY id
LIMIT :limit

-- name: sources_changed
-- Find which sources of an answer were erased or edited since they were read, with their present text (NULL: erased).
-- `source_ids` are messages, episodes, memories and facts; a text of NULL checks only that the row exists. `files`: the names
-- and texts of a message's files, as a JSON array, of which each must still be there. The text of an episode are the passages
-- of its message that were read. `derived_ids` are landmarks, summaries and compactions, which are also deleted when others
-- replace them.
SELECT s.id, coalesce(m.text || present.words, episode_message.text) AS text
FROM unnest(:source_ids::uuid[], :texts::text[], :files::text[]) AS s (id, text, files)
LEFT JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = s.id
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(a ->> 'name') || jsonb_agg(concat_ws(' ', a ->> 'name', a ->> 'text')), '[]') AS files,
           coalesce(string_agg(concat_ws(' ', '', a ->> 'name', a ->> 'text'), ''), '') AS words
    FROM jsonb_array_elements(m.attachments) AS a
) AS present
LEFT JOIN LATERAL (
    SELECT message_words(message.text, message.attachments) AS text
    FROM episodes AS e JOIN messages AS message ON message.tenant_id = :tenant_id AND message.id = e.message_id
    WHERE e.tenant_id = :tenant_id AND e.id = s.id
) AS episode_message ON true
WHERE CASE WHEN s.text IS NULL THEN NOT EXISTS (SELECT FROM memories WHERE tenant_id = :tenant_id AND id = s.id)
                                    AND NOT EXISTS (SELECT FROM facts WHERE tenant_id = :tenant_id AND id = s.id)
           ELSE NOT s.files::jsonb <@ present.files
                OR CASE WHEN m.id IS NOT NULL THEN m.text <> s.text
                        ELSE episode_message.text IS NULL
                             OR EXISTS (SELECT FROM string_to_table(s.text, E'\n […]\n') AS passage
                                        WHERE position(passage IN episode_message.text) = 0) END END
UNION ALL
SELECT id, NULL FROM erased
WHERE tenant_id = :tenant_id AND id = ANY (:derived_ids::uuid[])
      AND NOT EXISTS (SELECT FROM landmarks AS l WHERE l.tenant_id = :tenant_id AND l.id = erased.id)
      AND NOT EXISTS (SELECT FROM summaries AS s WHERE s.tenant_id = :tenant_id AND s.id = erased.id)
      AND NOT EXISTS (SELECT FROM compactions AS c WHERE c.tenant_id = :tenant_id AND c.id = erased.id)

-- name: receipt_insert
-- Store the receipt of an erasure. `counts` is JSON text. Of one that is stored already, the counts are replaced, and the
-- digests added.
INSERT INTO receipts AS r (tenant_id, id, made_at, key, counts, digests)
VALUES (:tenant_id, :id, :now, :key, :counts::jsonb, :digests::bytea[])
ON CONFLICT (tenant_id, id) DO UPDATE SET counts = excluded.counts, digests = r.digests || excluded.digests

-- name: erasure_withdrawn
-- Count the files that were put into the DMs of these users and are not to be deleted yet, and the exchanges of theirs that
-- nothing was learnt from yet.
SELECT (SELECT count(*) FROM posted_files WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND NOT due) AS files,
       (SELECT count(*) FROM gateway_exchanges
        WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND learnt_at IS NULL) AS exchanges

-- name: erasures_count
-- Count what was erased so far: the receipts, and what must not be stored again.
SELECT (SELECT count(*) FROM receipts WHERE tenant_id = :tenant_id)
       + (SELECT count(*) FROM erased WHERE tenant_id = :tenant_id)

-- name: receipt_get
-- Get a receipt.
SELECT made_at, key, counts, digests FROM receipts WHERE tenant_id = :tenant_id AND id = :id

-- name: facts_replaced
-- Before facts are erased, find the values that were replaced by them, and until when each will have held then
-- (infinity: it holds still).
WITH RECURSIVE chain (id, namespace, visibility, key, ends) AS (
    SELECT f.id, f.namespace, f.visibility, f.key, coalesce(e.valid_to, 'infinity')
    FROM facts AS f JOIN facts AS e ON e.tenant_id = :tenant_id AND e.namespace = f.namespace
         AND e.visibility = f.visibility AND e.key = f.key AND e.valid_from = f.valid_to
    WHERE f.tenant_id = :tenant_id AND e.id = ANY (:ids::uuid[]) AND NOT f.id = ANY (:ids::uuid[])
    UNION
    SELECT c.id, c.namespace, c.visibility, c.key, coalesce(e.valid_to, 'infinity')
    FROM chain AS c JOIN facts AS e ON e.tenant_id = :tenant_id AND e.namespace = c.namespace
         AND e.visibility = c.visibility AND e.key = c.key AND e.valid_from = c.ends
    WHERE e.id = ANY (:ids::uuid[])
)
SELECT id, nullif(max(ends), 'infinity') AS ends FROM chain GROUP BY id ORDER BY id

-- name: facts_reinstate
-- After facts were erased, let the values before them hold until then.
UPDATE facts AS f SET valid_to = new.ends
FROM unnest(:ids::uuid[], :ends::timestamptz[]) AS new (id, ends)
WHERE f.tenant_id = :tenant_id AND f.id = new.id

-- name: landmarks_inherit
-- Before landmarks are erased, let the versions that replaced them and stay be made from what the erased ones were made
-- from, and replace the last version before that also stays.
WITH RECURSIVE chain (id, before) AS (
    SELECT l.id, l.replaces FROM landmarks AS l
    WHERE l.tenant_id = :tenant_id AND l.replaces = ANY (:ids::uuid[]) AND NOT l.id = ANY (:ids::uuid[])
    UNION
    SELECT c.id, l.replaces FROM chain AS c JOIN landmarks AS l ON l.tenant_id = :tenant_id AND l.id = c.before
    WHERE c.before = ANY (:ids::uuid[])
), inherited AS (
    INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
    SELECT DISTINCT :tenant_id::uuid, 'landmark', c.id, s.source_kind, s.source_id
    FROM chain AS c JOIN lineage AS s ON s.tenant_id = :tenant_id AND s.item_id = c.before
    WHERE c.before = ANY (:ids::uuid[]) AND NOT s.source_id = ANY (:ids::uuid[])
    ON CONFLICT DO NOTHING
)
UPDATE landmarks AS l SET replaces = c.before FROM chain AS c
WHERE l.tenant_id = :tenant_id AND l.id = c.id AND (c.before IS NULL OR NOT c.before = ANY (:ids::uuid[]))

-- name: landmarks_reinstate
-- Before landmarks are erased, pin the last versions before them that stay; not where the erased one was retired or
-- replaced.
WITH RECURSIVE chain (before) AS (
    SELECT l.replaces FROM landmarks AS l
    WHERE l.tenant_id = :tenant_id AND l.id = ANY (:ids::uuid[]) AND l.state <> 'retired'
    UNION
    SELECT l.replaces FROM chain AS c JOIN landmarks AS l ON l.tenant_id = :tenant_id AND l.id = c.before
    WHERE c.before = ANY (:ids::uuid[])
)
UPDATE landmarks AS l SET state = 'pinned', retired_at = NULL, settled_by = NULL
FROM chain AS c
WHERE l.tenant_id = :tenant_id AND l.id = c.before AND l.state = 'retired' AND NOT l.id = ANY (:ids::uuid[])

-- name: erased_ids
-- List which of these were erased.
SELECT id FROM erased WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
