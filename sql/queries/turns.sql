-- name: turns_open
-- List the open turns of a conversation in the order of their messages, each with the conversation's workspace and who wrote
-- the message (NULL: nobody, as of a reminder). It sets its tenant itself, as api_key_find does.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT t.id, t.conversation_id, t.message_id, t.agent_id, t.adapter, t.state, c.workspace,
           CASE WHEN m.agent_id IS NULL THEN m.user_id END AS asker
    FROM turns AS t
    JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
    LEFT JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
    WHERE t.tenant_id = within.tenant::uuid AND t.conversation_id = :conversation_id AND t.state <> 'sent'
    ORDER BY t.queued_at, m.seq, t.id OFFSET 0
) AS found

-- name: turns_unowned
-- List the conversations with open turns that no process answers, the longest waiting first, where this process delivers.
-- `served` names where it does: a platform (`discord`), or one workspace of it (`slack:T123`). A turn whose own lock is held
-- is left to the process that received it. It sets its tenant itself, as api_key_find does.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT t.conversation_id
    FROM turns AS t JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
    WHERE t.tenant_id = within.tenant::uuid AND t.state <> 'sent'
          AND ARRAY[t.adapter, t.adapter || ':' || c.workspace] && :served::text[]
          AND process_lock(t.conversation_id) NOT IN (SELECT live_processes())
          AND process_lock(t.id) NOT IN (SELECT live_processes())
    GROUP BY t.conversation_id ORDER BY min(t.queued_at) OFFSET 0
) AS found

-- name: turns_notify
-- Tell every process, once the transaction is stored, that turns are in these conversations, each with its adapter, and which
-- process says so.
SELECT pg_notify('turns', concat_ws(' ', :process::bigint, c.tenant_id, c.id, q.adapter, c.workspace))
FROM unnest(:conversation_ids::uuid[], :adapters::text[]) AS q (conversation_id, adapter)
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = q.conversation_id

-- name: turn_get
-- Get one turn with its question and its reply: a row for each of the two that is stored, else one with neither.
-- `present_namespace` is that of its conversation now. It sets its tenant itself, as api_key_find does.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT t.id AS turn_id, t.conversation_id, t.message_id, t.agent_id AS turn_agent_id, t.adapter, t.state, t.reply_id,
           t.failure, t.prompt, t.answered_at,
           m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions, m.namespace,
           m.visibility, m.ephemeral, m.reply_to, m.trust, c.namespace AS present_namespace
    FROM turns AS t
    JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
    LEFT JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = ANY (ARRAY[t.message_id, t.reply_id])
    WHERE t.tenant_id = within.tenant::uuid AND t.id = :id OFFSET 0
) AS found

-- name: turn_to_answer
-- Lock the conversation of a turn for writing, and get what storing its answer depends on: the agent's last stored prompt
-- there, apart from this turn's, to measure how much of the prompt begins like it (`agent_id` NULL: there is no prompt),
-- and which sources of the prompt were erased or edited since they were read. What a prompt drew on is neither erased nor
-- edited while this waits for the lock: erasure is blocked by a statement before this one (erasure_block).
SELECT locked.*,
       (SELECT t.prompt -> 'role_messages' FROM turns AS t
        WHERE t.tenant_id = :tenant_id AND t.conversation_id = locked.id AND t.agent_id = :agent_id AND t.id <> :turn_id
              AND t.prompt IS NOT NULL
        ORDER BY t.queued_at DESC, t.answered_at DESC, t.id
        LIMIT 1) AS previous_messages,
       ARRAY(SELECT source FROM (
{{sources_changed}}
       ) AS source) AS changed_sources
FROM (
{{conversations_lock}}
) AS locked

-- name: turn_answer
-- Store an answer, unless one is stored, with what it was made from (`item_kinds` to `source_ids`), and append its reply to
-- the conversation as messages_append does (`conversation_id` NULL: there is none, or it is stored already). No row: an
-- answer was stored before, or the turn is gone; then nothing is stored. The API reports the first three token counts;
-- `counted_tokens` is our own count of the prompt, `reused_tokens` how many of them the previous prompt began with too.
WITH answered AS (
    UPDATE turns SET state = 'answered', reply_id = :reply_id, failure = :failure, prompt = :prompt,
           timings_ms = :timings_ms, model = :model,
           prompt_tokens = :prompt_tokens, completion_tokens = :completion_tokens, cached_tokens = :cached_tokens,
           answered_at = :now,
           counted_tokens = :counted_tokens, reused_tokens = :reused_tokens
    WHERE tenant_id = :tenant_id AND id = :id AND state = 'queued'
    RETURNING id
), made_from AS (
    INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
    SELECT :tenant_id, link.*
    FROM answered CROSS JOIN unnest(:item_kinds::text[], :item_ids::uuid[], :source_kinds::text[], :source_ids::uuid[]) AS link
    ON CONFLICT DO NOTHING
), appended AS (
    INSERT INTO messages (tenant_id, id, conversation_id, seq, external_id, at, user_id, agent_id, author, text,
                          namespace, visibility, indexed, ephemeral, trust)
    SELECT :tenant_id, :reply_id, :conversation_id, :seq, :external_id, :at, :user_id, :agent_id, :author, :text,
           :namespace, :visibility, true, :ephemeral, :trust
    FROM answered
    WHERE :conversation_id::uuid IS NOT NULL
    RETURNING conversation_id, seq
), counted AS (
    UPDATE conversations AS c
    SET last_seq = c.last_seq + CASE WHEN appended.seq > 0 THEN 1 ELSE 0 END, version = c.version + 1
    FROM appended
    WHERE c.tenant_id = :tenant_id AND c.id = appended.conversation_id
)
SELECT id FROM answered

-- name: turn_end
-- Record that an answer was sent; or (with a reason) that a turn ends without its answer being shown, and why: the
-- platform will never accept it, or it failed.
UPDATE turns
SET state = 'sent', sent_at = CASE WHEN :reason::text IS NULL THEN :now::timestamptz ELSE sent_at END,
    failure = coalesce(:reason, failure)
WHERE tenant_id = :tenant_id AND id = :id AND (state = 'answered' OR :reason::text IS NOT NULL AND state <> 'sent')

-- name: turn_delivered
-- Record that an answer was sent with this text (NULL: it is a failure), unless its reply has another text by now.
-- Returns that other text, whether there is a reply, and whether it was recorded; no row when the turn is gone. The
-- text that was sent is not returned: the driver keeps what a connection received last. It sets its tenant itself, as
-- api_key_find does. Only a plan that reads the turn to update first would find none to update: then nothing is
-- recorded.
WITH found AS MATERIALIZED (
    SELECT turn.*
    FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
    CROSS JOIN LATERAL (
        SELECT t.tenant_id, t.id, reply.text FROM turns AS t
        LEFT JOIN messages AS reply ON reply.tenant_id = t.tenant_id AND reply.id = t.reply_id
        WHERE t.tenant_id = within.tenant::uuid AND t.id = :id OFFSET 0
    ) AS turn
), sent AS (
    UPDATE turns AS t SET state = 'sent', sent_at = :now FROM found
    WHERE t.tenant_id = found.tenant_id AND t.id = found.id AND t.state = 'answered'
          AND (:text::text IS NULL OR found.text IS NULL OR found.text = :text)
    RETURNING t.id
)
SELECT CASE WHEN found.text <> :text THEN found.text END AS other_text, found.text IS NOT NULL AS has_reply,
       EXISTS (SELECT FROM sent) AS recorded
FROM found

-- name: turn_last_prompt
-- Get the last answered turn of a person in a conversation, or the one whose question or posted answer has this id on the
-- platform, for /why. Its prompt is NULL when it has expired; a turn whose prompt was erased is left out.
SELECT t.id AS turn, t.prompt, t.timings_ms, t.model, coalesce(r.text, '') AS answer
FROM turns AS t JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
LEFT JOIN messages AS r ON r.tenant_id = t.tenant_id AND r.id = t.reply_id
WHERE t.tenant_id = :tenant_id AND t.conversation_id = :conversation_id AND m.user_id = :asker_id
      AND (t.prompt IS NOT NULL OR t.prompt_expired)
      AND (:external_id::text IS NULL OR m.external_id = :external_id
           OR EXISTS (SELECT FROM deliveries AS d WHERE d.tenant_id = :tenant_id AND d.turn_id = t.id
                      AND d.external_id = :external_id))
ORDER BY t.queued_at DESC, t.id
LIMIT 1
