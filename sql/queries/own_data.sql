-- name: own_counts
-- Count what a person owns, by kind and by how it is filed. The answers are those to the person's questions.
SELECT kind, namespace, visibility, sum(count)::bigint AS count FROM (
    SELECT 'message' AS kind, namespace, visibility, 1 AS count FROM messages
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL
    UNION ALL
    SELECT 'file', namespace, visibility, 1 FROM messages CROSS JOIN LATERAL jsonb_array_elements(attachments)
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL
    UNION ALL
    SELECT 'memory', p.namespace, p.visibility, (
        SELECT count(*) FROM memories AS m
        WHERE m.tenant_id = :tenant_id AND m.user_id = p.user_id AND m.namespace = p.namespace AND m.visibility = p.visibility)
    FROM ({{own_memory_places}}) AS p
    UNION ALL
    SELECT 'fact', namespace, visibility, 1 FROM facts
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'landmark', namespace, visibility, 1 FROM landmarks
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'summary', namespace, visibility, 1 FROM summaries
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'pending ' || kind, namespace, visibility, 1 FROM quarantine
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'pending'
    UNION ALL
    SELECT 'reminder', namespace, visibility, 1 FROM reminders
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
    UNION ALL
    SELECT 'answer', q.namespace, q.visibility, 1
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

-- name: own_items
-- List what else a person owns, of some kinds, which are named as in the document of an export: each with one of the
-- person's users and, as JSON, what the document says of it; those of a kind oldest first; of what they have
-- set for themselves (settings), the latest. The value of a fact is a text.
SELECT kind, user_id, item FROM (
    SELECT 'accounts' AS kind, u.id AS user_id, to_json(u) AS item, row_number() OVER (ORDER BY u.id) AS n
    FROM (SELECT id, name, admin, opted_out, reads_rooms, disabled_at, created_at AS since FROM users
          WHERE tenant_id = :tenant_id AND id = ANY (:user_ids::uuid[]) AND 'accounts' = ANY (:kinds::text[])) AS u
    UNION ALL
    SELECT 'identities', i."user", to_json(i), row_number() OVER (ORDER BY i."user", i.platform, i.workspace, i.id)
    FROM (SELECT user_id AS "user", platform, workspace, external_id AS id, trust, timezone FROM identities
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'identities' = ANY (:kinds::text[])) AS i
    UNION ALL
    SELECT 'rooms', m.user_id, to_json(m), row_number() OVER (ORDER BY m.joined_at, m.id)
    FROM (SELECT user_id, conversation_id AS id, joined_at, left_at, admin FROM members
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'rooms' = ANY (:kinds::text[])) AS m
    UNION ALL
    SELECT 'teams', t.user_id, to_json(t), row_number() OVER (ORDER BY t.name, t.id, t.invited_until NULLS FIRST)
    FROM (SELECT m.team_id AS id, t.name, min(m.role) AS role, min(m.joined_at) AS joined_at,
                 NULL::timestamptz AS invited_until, (array_agg(m.user_id))[1] AS user_id
          FROM team_members AS m JOIN teams AS t ON t.tenant_id = :tenant_id AND t.id = m.team_id
          WHERE m.tenant_id = :tenant_id AND m.user_id = ANY (:user_ids::uuid[]) AND 'teams' = ANY (:kinds::text[])
          GROUP BY m.team_id, t.name
          UNION ALL
          SELECT i.team_id, t.name, NULL, NULL, max(i.expires_at), (array_agg(i.user_id))[1]
          FROM invites AS i JOIN teams AS t ON t.tenant_id = :tenant_id AND t.id = i.team_id
          WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (:user_ids::uuid[]) AND 'teams' = ANY (:kinds::text[])
          GROUP BY i.team_id, t.name) AS t
    UNION ALL
    SELECT 'settings', s.id, (s.settings || jsonb_build_object('changed_at', s.settings_at))::json, 1
    FROM (SELECT id, settings, settings_at FROM users
          WHERE tenant_id = :tenant_id AND id = ANY (:user_ids::uuid[]) AND settings IS NOT NULL
                AND 'settings' = ANY (:kinds::text[])
          ORDER BY settings_at DESC, id LIMIT 1) AS s
    UNION ALL
    SELECT 'memories', m.user_id, to_json(m), row_number() OVER (ORDER BY m.created_at, m.id)
    FROM (SELECT id, user_id, namespace, visibility, kind, key, title, text, content, tags, metadata, session,
                 allowed_vendors, author, origin, created_at, updated_at, version, history, expires_at, valid_to, superseded_by,
                 merged_into, trashed_at,
                 ARRAY(SELECT s.id FROM lineage AS l JOIN messages AS s ON s.tenant_id = :tenant_id AND s.id = l.source_id
                       WHERE l.tenant_id = :tenant_id AND l.item_id = memories.id AND s.user_id = ANY (:user_ids::uuid[])
                       ORDER BY s.at, s.id) AS messages
          FROM memories
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'memories' = ANY (:kinds::text[])) AS m
    UNION ALL
    SELECT 'facts', f.user_id, to_json(f), row_number() OVER (ORDER BY f.valid_from, f.id)
    FROM (SELECT id, user_id, namespace, visibility, key, value::text AS value, author, origin, valid_from, valid_to
          FROM facts
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'facts' = ANY (:kinds::text[])) AS f
    UNION ALL
    SELECT 'landmarks', l.user_id, to_json(l), row_number() OVER (ORDER BY l.decided_at, l.id)
    FROM (SELECT id, user_id, namespace, visibility, text, author, decided_at, state, retired_at, replaces FROM landmarks
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'landmarks' = ANY (:kinds::text[])) AS l
    UNION ALL
    SELECT 'pending', p.user_id, to_json(p), row_number() OVER (ORDER BY p.at, p.id)
    FROM (SELECT id, user_id, namespace, visibility, kind, detail, text, author, origin, at, entry,
                 ARRAY(SELECT s.id FROM lineage AS l JOIN messages AS s ON s.tenant_id = :tenant_id AND s.id = l.source_id
                       WHERE l.tenant_id = :tenant_id AND l.item_id = quarantine.id AND l.source_kind = 'message'
                             AND s.user_id = ANY (:user_ids::uuid[])
                       ORDER BY s.at, s.id) AS messages
          FROM quarantine
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'pending'
                AND 'pending' = ANY (:kinds::text[])) AS p
    UNION ALL
    SELECT 'summaries', s.user_id, to_json(s), row_number() OVER (ORDER BY s.ends_at, s.id)
    FROM (SELECT id, user_id, namespace, visibility, tier, text, starts_at, ends_at FROM summaries
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'summaries' = ANY (:kinds::text[])) AS s
    UNION ALL
    SELECT 'reminders', r.user_id, to_json(r), row_number() OVER (ORDER BY r.made_at, r.id)
    FROM (SELECT id, user_id, namespace, visibility, text, made_at, due_at, repeats, posted_at,
                 CASE state WHEN 'open' THEN 'open' ELSE 'ended' END AS state
          FROM reminders
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'reminders' = ANY (:kinds::text[])) AS r
    UNION ALL
    SELECT 'usage', u.user_id, to_json(u), row_number() OVER (ORDER BY u.day, u.kind, u.conversation, u.model, u.user_id)
    FROM (SELECT user_id, day, kind, nullif(conversation_id, '00000000-0000-0000-0000-000000000000') AS conversation,
                 model, calls, failures, refused, prompt_tokens, completion_tokens, cached_tokens, cost
          FROM model_usage
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'usage' = ANY (:kinds::text[])) AS u
    UNION ALL
    SELECT 'operations', o.user_id, to_json(o), row_number() OVER (ORDER BY o.month, o.operation, o.vendor, o.user_id)
    FROM (SELECT user_id, month, operation, vendor, count, tokens FROM operation_totals
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'operations' = ANY (:kinds::text[])) AS o
    UNION ALL
    SELECT 'reads', r.user_id, to_json(r), row_number() OVER (ORDER BY r.at, r.vendor, r.route, r.item_id, r.user_id)
    FROM (SELECT user_id, item_id, vendor, route, at FROM tool_reads
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND 'reads' = ANY (:kinds::text[])) AS r
) AS owned
ORDER BY kind, n

-- name: own_askers
-- Find whose questions, in rooms that a person may read now (`public`: they may enter public ones), were answered from what the person owns or from what was made
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
      AND (NOT room.private AND :public::boolean OR room.id = ANY (:joined_ids::uuid[]))
      AND q.user_id <> ALL (:user_ids::uuid[]) AND NOT q.ephemeral
GROUP BY room.id, room.title, room.name, room.private, u.id, u.name
ORDER BY 2, room.id, u.name, u.id
