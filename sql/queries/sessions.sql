-- part: session_rows
-- List the sessions of some users that a credential may know of, for statements that include this one. `projects`: those
-- whose sessions are among them (NULL: every project's).
SELECT c.id, c.name, c.user_id, c.agent_id, a.slug AS agent, c.project_id, p.slug AS project
FROM conversations AS c
JOIN agents AS a ON a.tenant_id = :tenant_id AND a.id = c.agent_id
LEFT JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = c.project_id
WHERE c.tenant_id = :tenant_id AND c.kind = 'session' AND c.user_id = ANY (:user_ids::uuid[])
      AND (:projects::uuid[] IS NULL OR c.project_id IS NULL OR c.project_id = ANY (:projects))

-- name: sessions_list
-- List a person's sessions that hold a message other than answers, the one with the latest message first, each with when
-- that was: all, the one of an `id`, those `named` so or so with a number after it, or those whose name holds some words, in
-- lower case. Of a session that was forgotten, retracted answers are left.
SELECT s.*, latest.at AS last_at FROM ({{session_rows}}) AS s
CROSS JOIN LATERAL (
    SELECT m.at FROM messages AS m
    WHERE m.tenant_id = :tenant_id AND m.conversation_id = s.id AND NOT m.ephemeral ORDER BY m.at DESC, m.seq DESC LIMIT 1
) AS latest
WHERE (latest.at, s.id) < (coalesce(:before_at::timestamptz, 'infinity'),
                           coalesce(:before_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
      AND (:id::uuid IS NULL OR s.id = :id)
      AND (:named::text IS NULL OR s.name = :named OR starts_with(s.name, :named || ' ('))
      AND (:words::text IS NULL OR strpos(lower(s.name), :words) > 0)
      AND EXISTS (SELECT FROM messages AS said
                  WHERE said.tenant_id = :tenant_id AND said.conversation_id = s.id AND NOT said.ephemeral
                        AND (said.agent_id IS NULL OR starts_with(said.external_id, 'post:')))
ORDER BY latest.at DESC, s.id DESC
LIMIT :limit

-- name: project_sessions_pooled
-- List the sessions that were put into a project, by namespace, each with the role that its person has there now.
SELECT s.namespace, (SELECT m.role FROM project_members AS m
                     JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id
                     JOIN users AS o ON o.tenant_id = :tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
                     WHERE m.tenant_id = :tenant_id AND m.project_id = :project_id AND o.id = s.user_id
                     ORDER BY array_position(ARRAY['admin', 'write', 'read'], m.role) LIMIT 1) AS role
FROM conversations AS s
WHERE s.tenant_id = :tenant_id AND s.project_id = :project_id AND s.kind = 'session' AND s.pooled
ORDER BY s.namespace

-- name: project_sessions
-- List the sessions of a project in which something was said, the one with the latest message first: a person's own, and those
-- that its pool holds (`pooled`: their namespaces), without those of people who opted out. A session of somebody else has no
-- name.
SELECT s.id, CASE WHEN s.user_id = ANY (:user_ids::uuid[]) THEN s.name ELSE '' END AS name, s.user_id, s.namespace,
       u.name AS author, a.slug AS agent, p.id AS project_id, p.slug AS project, latest.at AS last_at
FROM conversations AS s
JOIN agents AS a ON a.tenant_id = :tenant_id AND a.id = s.agent_id
JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = s.project_id
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = s.user_id
CROSS JOIN LATERAL (
    SELECT m.at FROM messages AS m
    WHERE m.tenant_id = :tenant_id AND m.conversation_id = s.id AND NOT m.ephemeral ORDER BY m.at DESC, m.seq DESC LIMIT 1
) AS latest
WHERE s.tenant_id = :tenant_id AND s.project_id = :project_id AND s.kind = 'session'
      AND (s.user_id = ANY (:user_ids::uuid[]) OR s.namespace = ANY (:pooled::text[]) AND NOT u.opted_out)
      AND (latest.at, s.id) < (coalesce(:before_at::timestamptz, 'infinity'),
                               coalesce(:before_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
      AND EXISTS (SELECT FROM messages AS said
                  WHERE said.tenant_id = :tenant_id AND said.conversation_id = s.id AND NOT said.ephemeral
                        AND (said.agent_id IS NULL OR starts_with(said.external_id, 'post:')))
ORDER BY latest.at DESC, s.id DESC
LIMIT :limit

-- name: session_messages
-- List what a person said in their sessions, newest first, each with its answer, and what the agent posted there of
-- itself (its text is the answer then). `agent` is a slug, `session` a name, `project` one whose sessions are listed alone.
SELECT page.id, page.at, page.external_id, page.text, page.files, page.user_id, page.posted, s.id AS conversation_id, s.name, s.agent,
       s.project_id, s.project, t.id AS turn_id, t.state, t.failure, t.answered_at, t.rating, r.text AS answer
FROM ({{session_rows}}) AS s
CROSS JOIN LATERAL (
    SELECT m.id, m.at, m.seq, m.external_id, m.text, s.user_id, m.agent_id IS NOT NULL AS posted,
           (SELECT coalesce(jsonb_agg(file - 'text' - 'address' ORDER BY n), '[]')
            FROM jsonb_array_elements(m.attachments) WITH ORDINALITY AS attached (file, n)) AS files
    FROM messages AS m
    WHERE m.tenant_id = :tenant_id AND m.conversation_id = s.id AND NOT m.ephemeral
          AND (m.agent_id IS NULL OR starts_with(m.external_id, 'post:'))
          AND (m.at, m.id) < (coalesce(:before_at::timestamptz, 'infinity'),
                              coalesce(:before_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
    ORDER BY m.at DESC, m.id DESC
    LIMIT :limit
) AS page
LEFT JOIN turns AS t ON t.tenant_id = :tenant_id AND t.message_id = page.id AND t.agent_id = s.agent_id
LEFT JOIN messages AS r ON r.tenant_id = :tenant_id AND r.id = t.reply_id
WHERE (:agent::text IS NULL OR s.agent = :agent) AND (:session::text IS NULL OR s.name = :session)
      AND (:project::uuid IS NULL OR s.project_id = :project)
ORDER BY page.at DESC, page.id DESC
LIMIT :limit

-- name: session_summaries
-- List the summaries of a person's session, the earliest first.
SELECT s.user_id, m.tier, m.starts_at, m.ends_at, m.text FROM ({{session_rows}}) AS s
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = s.id
JOIN summaries AS m ON m.tenant_id = :tenant_id AND m.namespace = c.namespace AND m.conversation_id = s.id
     AND m.user_id = s.user_id
WHERE s.id = :id
ORDER BY m.starts_at, m.ends_at DESC, m.id

-- name: session_turn
-- Get a turn of a person's session with its question, its answer and what the model used for it.
SELECT t.id, t.state, t.failure, t.answered_at, t.prompt, t.model, t.prompt_tokens, t.completion_tokens, t.cached_tokens,
       t.timings_ms,
       q.id AS question_id, q.external_id, s.user_id, q.at, q.trust, r.text AS answer,
       s.id AS conversation_id, s.name, s.agent, s.project_id, s.project
FROM ({{session_rows}}) AS s
JOIN turns AS t ON t.tenant_id = :tenant_id AND t.conversation_id = s.id
JOIN messages AS q ON q.tenant_id = :tenant_id AND q.id = t.message_id
LEFT JOIN messages AS r ON r.tenant_id = :tenant_id AND r.id = t.reply_id
WHERE t.id = :id

-- name: session_turn_rate
-- Record what a person thinks of an answer of a session of theirs: 1 good, -1 bad, NULL nothing any more.
UPDATE turns SET rating = :rating
WHERE tenant_id = :tenant_id AND id = :id AND reply_id IS NOT NULL
