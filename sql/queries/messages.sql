-- name: messages_on_platform
-- List what is stored of conversations since a time, to compare it with their platform, latest first: people's
-- messages with their last change, and the parts of answers that are posted (`own`). `with_threads`: of rooms, that
-- of their threads too.
WITH c AS MATERIALIZED (
    SELECT id, kind, name FROM conversations
    WHERE tenant_id = :tenant_id AND (id = ANY (:ids::uuid[]) OR (:with_threads::boolean AND room_id = ANY (:ids::uuid[])))
)
SELECT c.kind, c.name, m.external_id, m.at, coalesce(m.edited_at, m.at) AS changed_at, false AS own
FROM c JOIN messages AS m ON m.tenant_id = :tenant_id AND m.conversation_id = c.id
WHERE m.at >= :since AND m.agent_id IS NULL
UNION ALL
SELECT c.kind, c.name, d.external_id, d.sent_at, d.sent_at, true
FROM c JOIN turns AS t ON t.tenant_id = :tenant_id AND t.conversation_id = c.id
JOIN deliveries AS d ON d.tenant_id = :tenant_id AND d.turn_id = t.id
WHERE t.reply_id IS NOT NULL AND d.part >= 0 AND d.sent_at >= :since
      AND EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = :tenant_id AND m.id = t.reply_id)
ORDER BY 4 DESC
LIMIT :limit

-- name: messages_ephemeral_answered
-- List ephemeral messages whose turns are finished, with their conversations.
SELECT m.id, m.conversation_id FROM messages AS m
WHERE m.tenant_id = :tenant_id AND m.ephemeral
      AND NOT EXISTS (SELECT FROM turns AS t
                      WHERE t.tenant_id = :tenant_id AND t.state <> 'sent'
                            AND (t.message_id = m.id OR t.reply_id = m.id))
LIMIT :limit

-- name: received_known
-- List which of these messages are stored or were erased, which of these people are in which of these rooms now, and when
-- which of these conversations were deleted on their platform.
SELECT id, NULL::uuid AS user_id, NULL::timestamptz AS deleted_at FROM messages
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, NULL, NULL FROM erased WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
UNION ALL
SELECT id, NULL, erased_at FROM erased WHERE tenant_id = :tenant_id AND id = ANY (:conversation_ids::uuid[])
UNION ALL
SELECT m.conversation_id, m.user_id, NULL
FROM unnest(:room_ids::uuid[], :user_ids::uuid[]) AS sender (room, person)
JOIN members AS m ON m.tenant_id = :tenant_id AND m.conversation_id = sender.room AND m.user_id = sender.person
WHERE m.left_at IS NULL

-- name: messages_append
-- Append messages, queue turns that `process` will answer, count the messages, and title their conversations, in one
-- statement, since every message passes here. `attachments` and `mentions` are JSON texts. Ephemeral messages are never
-- indexed. The arrays from `changed_ids` on are one entry for each conversation: how many messages it got, how many of
-- them are not ephemeral, and its title (NULL: unchanged), which is not that of a `past` time.
WITH appended AS (
    INSERT INTO messages (tenant_id, id, conversation_id, seq, external_id, at, user_id, agent_id, author, text,
                          attachments,
                          mentions, namespace, visibility, indexed, ephemeral, reply_to, trust)
    SELECT :tenant_id, id, conversation_id, seq, external_id, at, user_id, agent_id, author, text, attachments::jsonb,
           ARRAY(SELECT value::uuid FROM jsonb_array_elements_text(mentions::jsonb) WITH ORDINALITY AS m (value, n)
                 ORDER BY n),
           namespace, visibility, indexed OR ephemeral, ephemeral, reply_to, trust
    FROM unnest(:ids::uuid[], :conversation_ids::uuid[], :seqs::bigint[], :external_ids::text[], :at::timestamptz[],
                :user_ids::uuid[], :agent_ids::uuid[], :authors::text[],
                :texts::text[], :attachments::text[], :mentions::text[], :namespaces::text[], :visibilities::text[],
                    :indexed::boolean[], :ephemeral::boolean[],
                :replies_to::text[], :trusts::text[])
         AS new (id, conversation_id, seq, external_id, at, user_id, agent_id, author, text, attachments, mentions,
                 namespace,
                 visibility, indexed, ephemeral, reply_to, trust)
), queued AS (
    INSERT INTO turns (tenant_id, id, conversation_id, message_id, agent_id, adapter, state, queued_at)
    SELECT :tenant_id, id, conversation_id, message_id, agent_id, adapter, 'queued', at
    FROM unnest(:turn_ids::uuid[], :turn_conversation_ids::uuid[], :turn_message_ids::uuid[], :turn_agent_ids::uuid[],
                :turn_adapters::text[], :queued_at::timestamptz[])
         AS new (id, conversation_id, message_id, agent_id, adapter, at)
    ON CONFLICT DO NOTHING
)
UPDATE conversations AS c
SET last_seq = c.last_seq + new.stored, version = c.version + new.count,
    title = CASE WHEN :past::boolean THEN coalesce(c.title, new.title) ELSE coalesce(new.title, c.title) END
FROM unnest(:changed_ids::uuid[], :counts::bigint[], :titles::text[], :stored_counts::bigint[])
     AS new (id, count, title, stored)
WHERE c.tenant_id = :tenant_id AND c.id = new.id

-- name: messages_latest
-- Get the last messages of a conversation before a position (NULL: the end), newest first.
SELECT id, external_id, seq, at, user_id, agent_id, author, text, attachments, mentions, namespace, visibility, reply_to,
       edited_at
FROM messages
WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id AND namespace = :namespace AND NOT ephemeral
      AND (at, seq) < (CASE WHEN :before_at::timestamptz IS NULL THEN 'infinity' ELSE :before_at END,
                       CASE WHEN :before_seq::bigint IS NULL THEN 0 ELSE :before_seq END)
ORDER BY at DESC, seq DESC
LIMIT :limit

-- name: messages_of_talk
-- List the last messages of threads, as far as they are in these namespaces, and the message that each hangs under (`opening_ids`, or the question whose
-- answer has the thread's name as its id on the platform) with its answers. Of a question: its text, the agents that it is a question
-- to, and its replies.
WITH thread AS (
    SELECT * FROM unnest(:thread_ids::uuid[], :room_ids::uuid[], :names::text[], :opening_ids::uuid[], :namespaces::text[])
        AS thread (id, room_id, name, opening_id, namespace)
), opening AS (
    SELECT id AS thread_id, opening_id AS message_id FROM thread
    UNION
    SELECT thread.id, t.message_id
    FROM thread JOIN deliveries AS d ON d.tenant_id = :tenant_id AND d.external_id = thread.name
    JOIN turns AS t ON t.tenant_id = :tenant_id AND t.id = d.turn_id AND t.conversation_id = thread.room_id
), said AS (
    SELECT thread.id AS thread_id, last.id
    FROM thread CROSS JOIN LATERAL (
        SELECT m.id FROM messages AS m
        WHERE m.tenant_id = :tenant_id AND m.conversation_id = thread.id AND m.namespace = thread.namespace
        ORDER BY m.at DESC, m.seq DESC LIMIT :limit) AS last
    UNION
    SELECT thread_id, message_id FROM opening
    UNION
    SELECT opening.thread_id, t.reply_id
    FROM opening JOIN turns AS t ON t.tenant_id = :tenant_id AND t.message_id = opening.message_id
    WHERE t.reply_id IS NOT NULL
)
SELECT said.thread_id, m.id, m.at, m.seq, m.user_id, m.agent_id, m.reply_to,
       CASE WHEN cardinality(asked.agents) > 0 THEN m.text ELSE '' END AS text, asked.agents, asked.replies
FROM said JOIN thread ON thread.id = said.thread_id
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = said.id AND m.namespace = thread.namespace
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(t.agent_id), '{}') AS agents,
           coalesce(array_agg(t.reply_id) FILTER (WHERE t.reply_id IS NOT NULL), '{}') AS replies
    FROM turns AS t
    WHERE t.tenant_id = :tenant_id AND t.message_id = m.id AND m.agent_id IS NULL) AS asked

-- name: messages_get
-- Get messages.
SELECT id, external_id, seq, at, user_id, agent_id, author, text, attachments, mentions, namespace, visibility,
       conversation_id,
       ephemeral, reply_to, trust
FROM messages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: messages_by_external_id
-- Find messages by a platform's id.
SELECT m.id, m.conversation_id, CASE WHEN m.agent_id IS NULL THEN m.user_id END AS user_id
FROM messages AS m JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
WHERE m.tenant_id = :tenant_id AND c.platform = :platform AND c.workspace = :workspace AND m.external_id = :external_id
ORDER BY m.id

-- name: message_may_arrive
-- Check whether a message that is not stored would be if it came now: it was not erased, and is to be answered, or its
-- room stores everything and its sender has not opted out. `container_id` is the room, DM or session.
SELECT NOT EXISTS (SELECT FROM erased WHERE tenant_id = :tenant_id AND id = :id)
       AND (:answered
            OR NOT EXISTS (SELECT FROM conversations
                           WHERE tenant_id = :tenant_id AND id = :container_id AND recording <> 'on')
            AND NOT EXISTS (SELECT FROM users WHERE tenant_id = :tenant_id AND id = :user_id AND opted_out))

-- name: message_recording
-- Get the recording policy that applies to a message now, whether its sender has opted out, and whether a turn answers it.
SELECT coalesce(r.recording, c.recording) AS policy, coalesce(u.opted_out, false) AS opted_out,
       EXISTS (SELECT FROM turns AS t WHERE t.tenant_id = :tenant_id AND t.message_id = m.id) AS answered
FROM messages AS m
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
LEFT JOIN conversations AS r ON r.tenant_id = :tenant_id AND r.id = c.room_id
LEFT JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id
WHERE m.tenant_id = :tenant_id AND m.id = :id

-- name: message_edit
-- Replace a message's text, mentions and attachments (JSON text), and queue it for indexing.
UPDATE messages SET text = :text, mentions = :mentions, edited_at = :now, attachments = :attachments::jsonb,
    indexed = false
WHERE tenant_id = :tenant_id AND id = :id

-- name: message_note_edit
-- Record when a platform says that a message was edited. No row where a later edit is known already.
UPDATE messages SET edit_stated_at = :stated_at
WHERE tenant_id = :tenant_id AND id = :id AND (edit_stated_at IS NULL OR edit_stated_at <= :stated_at)
RETURNING id

-- name: message_set_files
-- Replace a message's attachments (JSON text) if they are still those `before`, and queue it for indexing, unless it is
-- ephemeral.
UPDATE messages SET attachments = :attachments::jsonb, indexed = ephemeral
WHERE tenant_id = :tenant_id AND id = :id AND attachments = :before::jsonb
RETURNING id

-- name: messages_unindexed
-- Lock the next messages that are not indexed, oldest first. Rows that refer to a message do not hide it: their locks
-- allow this one.
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions,
       m.namespace,
       m.visibility, m.trust
FROM messages AS m
WHERE m.tenant_id = :tenant_id AND NOT m.indexed
ORDER BY m.conversation_id, m.seq
LIMIT :limit
FOR NO KEY UPDATE SKIP LOCKED

-- name: messages_set_skipped
-- Mark a message that can't be indexed or extracted from as done, with the reason; or (without one) let all that were marked
-- be indexed again.
UPDATE messages SET indexed = :why::text IS NOT NULL, skipped = :why
WHERE tenant_id = :tenant_id AND (id = :id::uuid OR :why::text IS NULL AND skipped IS NOT NULL)

-- name: messages_skipped
-- Count the messages that were skipped by the reason, with one of them, the most frequent first.
SELECT skipped AS why, count(*) AS count, min(id::text) AS example FROM messages
WHERE tenant_id = :tenant_id AND skipped IS NOT NULL GROUP BY skipped ORDER BY count DESC, skipped
