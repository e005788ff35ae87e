-- name: messages_known
-- What for: which of these ids are stored or were erased. $1 tenant, $2 ids.
SELECT id FROM messages WHERE tenant_id = $1 AND id = ANY ($2::uuid[])
UNION ALL
SELECT id FROM erased WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: messages_append
-- What for: append to the log, count it, and note how far a platform's events were received: one statement, for every message
-- passes here. $1 tenant, then one array each for the messages: $2 id, $3 conversation, $4 seq, $5 external id, $6 at, $7 user,
-- $8 agent, $9 author, $10 text, $11 attachments (JSON text), $12 mentions (JSON text), $13 run, $14 visibility, $15 indexed,
-- $16 ephemeral (such a one is never indexed), $17 which message it answers, by the platform's id; then for their conversations:
-- $18 id, $19 how many messages it got, $23 how many of them stay, and of the latest that was received $20 id, $21 time (NULL: none was) and $22 what
-- people call the conversation (NULL: as before).
WITH said AS (
    INSERT INTO messages (tenant_id, id, conversation_id, seq, external_id, at, user_id, agent_id, author, text, attachments,
                          mentions, namespace, visibility, indexed, ephemeral, reply_to)
    SELECT $1, id, conversation_id, seq, external_id, at, user_id, agent_id, author, text, attachments::jsonb,
           ARRAY(SELECT value::uuid FROM jsonb_array_elements_text(mentions::jsonb) WITH ORDINALITY AS m (value, n)
                 ORDER BY n),
           namespace, visibility, indexed OR ephemeral, ephemeral, reply_to
    FROM unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::text[], $6::timestamptz[], $7::uuid[], $8::uuid[], $9::text[],
                $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::boolean[], $16::boolean[],
                $17::text[])
         AS new (id, conversation_id, seq, external_id, at, user_id, agent_id, author, text, attachments, mentions, namespace,
                 visibility, indexed, ephemeral, reply_to)
)
UPDATE conversations AS c
SET last_seq = c.last_seq + new.kept, version = c.version + new.count,
    seen_id = CASE WHEN new.at >= coalesce(c.seen_at, '-infinity') THEN new.seen_id ELSE c.seen_id END,
    seen_at = greatest(c.seen_at, new.at),
    title = CASE WHEN new.at >= coalesce(c.seen_at, '-infinity') THEN coalesce(new.title, c.title) ELSE c.title END
FROM unnest($18::uuid[], $19::bigint[], $20::text[], $21::timestamptz[], $22::text[], $23::bigint[])
     AS new (id, count, seen_id, at, title, kept)
WHERE c.tenant_id = $1 AND c.id = new.id

-- name: messages_latest
-- What for: the end of a conversation's log, newest first. $1 tenant, $2 conversation, $3 run, $4 how many,
-- $5 and $6 before which (at, seq); NULL for the end.
SELECT id, external_id, seq, at, user_id, agent_id, author, text, attachments, mentions, namespace, visibility, reply_to
FROM messages
WHERE tenant_id = $1 AND conversation_id = $2 AND namespace = $3 AND NOT ephemeral
      AND (at, seq) < (CASE WHEN $5::timestamptz IS NULL THEN 'infinity' ELSE $5 END,
                       CASE WHEN $6::bigint IS NULL THEN 0 ELSE $6 END)
ORDER BY at DESC, seq DESC
LIMIT $4

-- name: message_get
-- What for: one message. $1 tenant, $2 id.
SELECT id, external_id, seq, at, user_id, agent_id, author, text, attachments, mentions, namespace, visibility, conversation_id,
       ephemeral, reply_to
FROM messages WHERE tenant_id = $1 AND id = $2

-- name: messages_by_external_id
-- What for: which message a platform means by its id. $1 tenant, $2 platform, $3 workspace, $4 external id.
SELECT m.id, m.conversation_id, CASE WHEN m.agent_id IS NULL THEN m.user_id END AS user_id
FROM messages AS m JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
WHERE m.tenant_id = $1 AND c.platform = $2 AND c.workspace = $3 AND m.external_id = $4
ORDER BY m.id

-- name: messages_by_user
-- What for: all that a person said in some conversation, or anywhere. $1 tenant, $2 user, $3 conversation or NULL.
SELECT id FROM messages
WHERE tenant_id = $1 AND user_id = $2 AND agent_id IS NULL AND ($3::uuid IS NULL OR conversation_id = $3)
ORDER BY at, seq

-- name: message_edit
-- What for: the words were changed on the platform. $1 tenant, $2 id, $3 text, $4 mentions, $5 when, $6 what is attached now,
-- as JSON text.
UPDATE messages SET text = $3, mentions = $4, edited_at = $5, attachments = $6::jsonb, indexed = false
WHERE tenant_id = $1 AND id = $2

-- name: messages_unindexed
-- What for: the next messages that recall can't find yet, oldest first. $1 tenant, $2 how many.
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions, m.namespace,
       m.visibility
FROM messages AS m
WHERE m.tenant_id = $1 AND NOT m.indexed
ORDER BY m.conversation_id, m.seq
LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: messages_mark_indexed
-- What for: recall can find them now. $1 tenant, $2 ids.
UPDATE messages SET indexed = true WHERE tenant_id = $1 AND id = ANY ($2::uuid[])
