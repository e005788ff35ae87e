-- name: own_counts
-- Count what a person owns, by kind and by how it is filed. The answers are those to the person's questions.
SELECT kind, namespace, visibility, count(*) AS count FROM (
    SELECT 'message' AS kind, namespace, visibility FROM messages
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL
    UNION ALL
    SELECT 'file', namespace, visibility FROM messages CROSS JOIN LATERAL jsonb_array_elements(attachments)
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL
    UNION ALL
    SELECT 'memory', namespace, visibility FROM memories
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'fact', namespace, visibility FROM facts
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'landmark', namespace, visibility FROM landmarks
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'summary', namespace, visibility FROM summaries
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'pending ' || kind, namespace, visibility FROM quarantine
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'pending'
    UNION ALL
    SELECT 'reminder', namespace, visibility FROM reminders
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'answer', q.namespace, q.visibility
    FROM messages AS q JOIN turns AS t ON t.tenant_id = :tenant_id AND t.message_id = q.id
    WHERE q.tenant_id = :tenant_id AND q.user_id = ANY (:user_ids::uuid[]) AND q.agent_id IS NULL AND t.state <> 'queued'
) AS owned
GROUP BY kind, namespace, visibility
ORDER BY namespace, kind, visibility

-- name: own_places
-- List a person's own DMs and sessions, the rooms that they are or were members of, and the rooms `room_ids`, each with
-- whether it is one of those that they are in now (`joined_ids`) and its project with their role in it.
SELECT c.id, c.kind, coalesce(c.title, c.name) AS name, c.namespace, c.private, c.pooled, a.slug AS agent,
       p.id AS project_id, p.slug AS project, coalesce(p.isolated, false) AS isolated,
       c.id = ANY (:joined_ids::uuid[]) AS joined,
       (SELECT pm.role FROM project_members AS pm
        WHERE pm.tenant_id = :tenant_id AND pm.project_id = c.project_id AND pm.user_id = ANY (:user_ids::uuid[])
        ORDER BY array_position(ARRAY['admin', 'write', 'read'], pm.role) LIMIT 1) AS role
FROM conversations AS c
LEFT JOIN agents AS a ON a.tenant_id = :tenant_id AND a.id = c.agent_id
LEFT JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = c.project_id
WHERE c.tenant_id = :tenant_id AND c.kind <> 'thread'
      AND (c.user_id = ANY (:user_ids::uuid[]) OR c.id = ANY (:room_ids::uuid[])
           OR EXISTS (SELECT FROM members AS m WHERE m.tenant_id = :tenant_id AND m.conversation_id = c.id
                      AND m.user_id = ANY (:user_ids::uuid[])))
ORDER BY c.kind, 3, c.id

-- name: own_teams
-- List the teams that a person is in, with the best of their roles, and those that they are invited to.
SELECT t.id, t.name, min(m.role) AS role, min(m.joined_at) AS joined_at, NULL::timestamptz AS invited_until
FROM team_members AS m JOIN teams AS t ON t.tenant_id = :tenant_id AND t.id = m.team_id
WHERE m.tenant_id = :tenant_id AND m.user_id = ANY (:user_ids::uuid[])
GROUP BY t.id, t.name
UNION ALL
SELECT t.id, t.name, NULL, NULL, max(i.expires_at)
FROM team_invites AS i JOIN teams AS t ON t.tenant_id = :tenant_id AND t.id = i.team_id
WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (:user_ids::uuid[])
GROUP BY t.id, t.name
ORDER BY 2, 1, 5 NULLS FIRST

-- name: own_memberships
-- List the rooms that a person is or was in.
SELECT m.conversation_id AS room_id, m.joined_at, m.left_at, m.admin FROM members AS m
WHERE m.tenant_id = :tenant_id AND m.user_id = ANY (:user_ids::uuid[])
ORDER BY m.joined_at, m.conversation_id

-- name: own_accounts
-- List a person's users with their identities on the platforms.
SELECT u.id, u.name, u.admin, u.opted_out, u.reads_rooms, u.created_at, i.platform, i.workspace, i.external_id,
       i.trust, i.timezone
FROM users AS u LEFT JOIN identities AS i ON i.tenant_id = :tenant_id AND i.user_id = u.id
WHERE u.tenant_id = :tenant_id AND u.id = ANY (:user_ids::uuid[])
ORDER BY u.id, i.platform, i.workspace, i.external_id

-- name: own_message_ids
-- Get the ids of a person's own messages, oldest first.
SELECT coalesce(array_agg(id ORDER BY at, seq, id), '{}') AS ids FROM messages
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL

-- name: own_messages
-- List some of a person's own messages, oldest first.
SELECT id, external_id, conversation_id, at, edited_at, user_id, author, text, attachments, namespace, visibility, reply_to
FROM messages
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL AND id = ANY (:ids::uuid[])
ORDER BY at, seq, id

-- name: own_turns
-- List the answers to a person's questions, oldest first. The answer's text is NULL where it was not stored.
SELECT t.id, t.message_id AS question_id, t.conversation_id, q.user_id, q.namespace, q.visibility, t.answered_at,
       coalesce(r.author, a.name) AS agent, r.text, t.failure, t.model, t.prompt
FROM messages AS q JOIN turns AS t ON t.tenant_id = :tenant_id AND t.message_id = q.id
LEFT JOIN messages AS r ON r.tenant_id = :tenant_id AND r.id = t.reply_id
LEFT JOIN agents AS a ON a.tenant_id = :tenant_id AND a.id = t.agent_id
WHERE q.tenant_id = :tenant_id AND q.user_id = ANY (:user_ids::uuid[]) AND q.agent_id IS NULL AND t.state <> 'queued'
ORDER BY t.queued_at, t.id

-- name: own_memories
-- List a person's memories with their history and the person's own messages that they were made from, oldest first.
SELECT m.id, m.user_id, m.namespace, m.visibility, m.kind, m.key, m.title, m.text, m.content, m.tags, m.metadata, m.session,
       m.allowed_vendors, m.author, m.origin, m.created_at, m.updated_at, m.version, m.expires_at, m.valid_to,
       m.superseded_by, m.merged_into, m.trashed_at,
       ARRAY(SELECT s.id FROM lineage AS l JOIN messages AS s ON s.tenant_id = :tenant_id AND s.id = l.source_id
             WHERE l.tenant_id = :tenant_id AND l.item_id = m.id AND s.user_id = ANY (:user_ids::uuid[])
             ORDER BY s.at, s.id) AS messages
FROM memories AS m
WHERE m.tenant_id = :tenant_id AND m.user_id = ANY (:user_ids::uuid[])
ORDER BY m.created_at, m.id

-- name: own_facts
-- List a person's facts with their history, oldest first.
SELECT id, user_id, namespace, visibility, key, value, author, origin, valid_from, valid_to FROM facts
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
ORDER BY valid_from, id

-- name: own_landmarks
-- List a person's landmarks, oldest first.
SELECT id, user_id, namespace, visibility, text, author, decided_at, state, retired_at, replaces FROM landmarks
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
ORDER BY decided_at, id

-- name: own_pending
-- List what waits for approval of a person, with the person's own messages that it was found in, oldest first.
SELECT p.id, p.user_id, p.namespace, p.visibility, p.kind, p.detail, p.text, p.author, p.origin, p.at, p.entry,
       ARRAY(SELECT s.id FROM lineage AS l JOIN messages AS s ON s.tenant_id = :tenant_id AND s.id = l.source_id
             WHERE l.tenant_id = :tenant_id AND l.item_id = p.id AND l.source_kind = 'message'
                   AND s.user_id = ANY (:user_ids::uuid[])
             ORDER BY s.at, s.id) AS messages
FROM quarantine AS p
WHERE p.tenant_id = :tenant_id AND p.user_id = ANY (:user_ids::uuid[]) AND p.state = 'pending'
ORDER BY p.at, p.id

-- name: own_summaries
-- List the summaries of a person's own DMs and sessions, oldest first.
SELECT id, user_id, namespace, visibility, tier, text, starts_at, ends_at FROM summaries
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
ORDER BY ends_at, id

-- name: own_reminders
-- List a person's reminders, also those that have ended, oldest first.
SELECT id, user_id, namespace, visibility, text, made_at, due_at, repeats, posted_at, state FROM reminders
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
ORDER BY made_at, id

-- name: own_usage
-- List the calls of models in a person's name, by day, kind, conversation and model.
SELECT user_id, day, kind, nullif(conversation_id, '00000000-0000-0000-0000-000000000000') AS conversation, model, calls,
       failures, refused, prompt_tokens, completion_tokens, cached_tokens, cost
FROM model_usage
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
ORDER BY day, kind, conversation_id, model, user_id

-- name: own_askers
-- Find whose questions, in rooms that a person may read now, were answered from what the person owns or from what was made
-- from it. A room's earlier time as a private one is not among them. Questions elsewhere are not even counted: how often
-- others ask where the person may not read is not theirs to know.
WITH RECURSIVE owned (id) AS (
    SELECT id FROM messages
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL
    UNION ALL
    SELECT e.id FROM messages AS m JOIN episodes AS e ON e.tenant_id = :tenant_id AND e.message_id = m.id
    WHERE m.tenant_id = :tenant_id AND m.user_id = ANY (:user_ids::uuid[]) AND m.agent_id IS NULL
    UNION ALL
    SELECT id FROM memories WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT id FROM facts WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT id FROM landmarks WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
), derived (kind, id) AS (
    SELECT l.item_kind, l.item_id FROM owned JOIN lineage AS l ON l.tenant_id = :tenant_id AND l.source_id = owned.id
    UNION
    SELECT l.item_kind, l.item_id FROM derived AS d JOIN lineage AS l ON l.tenant_id = :tenant_id AND l.source_id = d.id
        AND d.kind NOT IN ('turn', 'answer')
)
SELECT room.id AS room_id, coalesce(room.title, room.name) AS name, room.private,
       room.id = ANY (:joined_ids::uuid[]) AS joined, u.name AS asker, count(*) AS answers,
       max(t.answered_at) AS last_at
FROM derived AS d
JOIN turns AS t ON t.tenant_id = :tenant_id AND t.id = d.id AND d.kind = 'turn'
JOIN messages AS q ON q.tenant_id = :tenant_id AND q.id = t.message_id
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = q.user_id
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = t.conversation_id
JOIN conversations AS room ON room.tenant_id = :tenant_id AND room.id = coalesce(c.room_id, c.id)
WHERE room.kind = 'room' AND q.namespace = room.namespace
      AND (NOT room.private OR room.id = ANY (:joined_ids::uuid[]))
      AND q.user_id <> ALL (:user_ids::uuid[]) AND NOT q.ephemeral
GROUP BY room.id, room.title, room.name, room.private, u.id, u.name
ORDER BY 2, room.id, u.name, u.id
