-- name: conversations_ensure
-- What for: make conversations the first time they are named. $1 tenant, $2 ids, $3 kinds, $4 platform, $5 workspace,
-- $6 names, $7 runs, $8 private, $9 rooms (of threads), $10 threads, $11 users, $12 agents, $13 projects, $14 now.
INSERT INTO conversations (tenant_id, id, kind, platform, workspace, name, namespace, private, room_id, thread,
                           user_id, agent_id, project_id, created_at)
SELECT $1, id, kind, $4, $5, name, namespace, private, room_id, thread, user_id, agent_id, project_id, $14
FROM unnest($2::uuid[], $3::text[], $6::text[], $7::text[], $8::boolean[], $9::uuid[], $10::text[], $11::uuid[],
            $12::uuid[], $13::uuid[])
     AS new (id, kind, name, namespace, private, room_id, thread, user_id, agent_id, project_id)
ORDER BY room_id NULLS FIRST, id
ON CONFLICT DO NOTHING

-- name: conversations_lock
-- What for: take conversations for writing, always in the same order: threads behind the rooms that they follow (see
-- threads_follow_room). $1 tenant, $2 ids.
SELECT c.id, c.kind, coalesce(c.title, c.name) AS name, c.namespace, c.generation, c.private, c.room_id, c.thread, c.user_id,
       c.agent_id, c.project_id, c.last_seq, c.version,
       coalesce((SELECT r.recording FROM conversations AS r WHERE r.tenant_id = $1 AND r.id = c.room_id), c.recording) AS recording
FROM conversations AS c
WHERE c.tenant_id = $1 AND c.id = ANY ($2::uuid[])
ORDER BY c.room_id IS NOT NULL, c.id
FOR NO KEY UPDATE

-- name: conversation_get
-- What for: one conversation as it is now; a thread has its room's project and privacy. $1 tenant, $2 id.
SELECT c.id, c.kind, coalesce(r.title, c.title, c.name) AS name, c.namespace, coalesce(r.private, c.private) AS private,
       c.room_id, c.thread, c.user_id, c.agent_id, coalesce(r.project_id, c.project_id) AS project_id, c.version
FROM conversations AS c
LEFT JOIN conversations AS r ON r.tenant_id = c.tenant_id AND r.id = c.room_id
WHERE c.tenant_id = $1 AND c.id = $2

-- name: conversation_touch
-- What for: the log changed otherwise than by appending (an edit, an erasure). $1 tenant, $2 ids.
UPDATE conversations SET version = version + 1 WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: room_set_private
-- What for: a room was closed or opened. $1 tenant, $2 room, $3 private, $4 run, $5 generation. A new run begins to count
-- at a round number: where its window stands must not tell how much was said before.
UPDATE conversations
SET private = $3, namespace = $4, generation = $5, version = version + 1, pooled = pooled AND $3,
    last_seq = CASE WHEN namespace = $4 THEN last_seq ELSE (last_seq + 99) / 100 * 100 END
WHERE tenant_id = $1 AND id = $2

-- name: room_states
-- What for: who may read rooms now, and where the words begin that were said since they were opened (no words are read);
-- history that is imported late is filed by it. $1 tenant, $2 rooms.
SELECT c.id, c.private, c.generation > 0 AS reopened,
       CASE WHEN c.generation > 0 THEN
           (SELECT min(m.at) FROM messages AS m
            WHERE m.tenant_id = $1 AND m.namespace = c.namespace AND m.conversation_id IN
                  (SELECT t.id FROM conversations AS t WHERE t.tenant_id = $1 AND (t.id = c.id OR t.room_id = c.id)))
       END AS since
FROM conversations AS c
WHERE c.tenant_id = $1 AND c.id = ANY ($2::uuid[]) AND c.kind = 'room'

-- name: threads_follow_room
-- What for: a room's public threads are filed where the room is. $1 tenant, $2 room, $3 run.
UPDATE conversations
SET namespace = $3, version = version + 1,
    last_seq = CASE WHEN namespace = $3 THEN last_seq ELSE (last_seq + 99) / 100 * 100 END
WHERE tenant_id = $1 AND room_id = $2

-- name: thread_archive
-- What for: a platform archived a thread, or (NULL) took it out of its archive. $1 tenant, $2 thread, $3 when.
UPDATE conversations SET archived_at = $3 WHERE tenant_id = $1 AND id = $2 AND kind = 'thread'

-- name: conversation_assign
-- What for: put a conversation into a project, or (NULL) take it out. $1 tenant, $2 conversation, $3 project, $4 pooled.
UPDATE conversations SET project_id = $3, pooled = $4 WHERE tenant_id = $1 AND id = $2

-- name: members_ensure
-- What for: who speaks in a room is in it; the first of a room is its admin. $1 tenant, $2 rooms, $3 users, $4 since when.
-- Who left a public room and speaks there again is back; a private one needs a join (checked before). What was said
-- before they left (history, imported late) brings nobody back.
INSERT INTO members (tenant_id, conversation_id, user_id, joined_at, admin)
SELECT $1, room, person, since,
       NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = $1 AND m.conversation_id = room)
       AND row_number() OVER (PARTITION BY room ORDER BY n) = 1
FROM unnest($2::uuid[], $3::uuid[], $4::timestamptz[]) WITH ORDINALITY AS new (room, person, since, n)
ON CONFLICT (tenant_id, conversation_id, user_id) DO UPDATE SET left_at = NULL, joined_at = excluded.joined_at
    WHERE members.left_at <= excluded.joined_at

-- name: members_gone
-- What for: who has left which of these rooms. $1 tenant, $2 rooms.
SELECT conversation_id, user_id FROM members
WHERE tenant_id = $1 AND conversation_id = ANY ($2::uuid[]) AND left_at IS NOT NULL

-- name: member_join
-- What for: a person came into a room, unless they have left it since (history, imported again). $1 tenant, $2 room,
-- $3 user, $4 when.
INSERT INTO members (tenant_id, conversation_id, user_id, joined_at, admin)
VALUES ($1, $2, $3, $4, NOT EXISTS (SELECT FROM members WHERE tenant_id = $1 AND conversation_id = $2))
ON CONFLICT (tenant_id, conversation_id, user_id) DO UPDATE SET left_at = NULL, joined_at = excluded.joined_at
    WHERE members.left_at <= excluded.joined_at

-- name: member_leave
-- What for: a person left a room, unless they came back since; remembered even if they were never seen there. $1 tenant,
-- $2 room, $3 user, $4 when.
INSERT INTO members (tenant_id, conversation_id, user_id, joined_at, left_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (tenant_id, conversation_id, user_id) DO UPDATE SET left_at = excluded.left_at, admin = false
    WHERE members.left_at IS NULL AND members.joined_at <= excluded.left_at

-- name: member_is_admin
-- What for: whether a person is an admin of a room now. Slack and Discord say themselves who is an admin there, so having
-- spoken first makes nobody one. $1 tenant, $2 room, $3 user.
SELECT coalesce(bool_or(m.admin AND m.left_at IS NULL), false) FROM members AS m
JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND m.user_id = $3 AND c.platform NOT IN ('slack', 'discord')

-- name: access_context
-- What for: all that composer.visibility judges by, as it is now. $1 tenant, $2 conversation, $3 asker.
-- Materialized: row-level security keeps a bare coalesce() out of index conditions, and every member of every room would
-- be read.
WITH here AS MATERIALIZED (
    SELECT c.tenant_id, c.id, c.kind, coalesce(r.title, c.title, c.name) AS name, c.namespace,
           coalesce(r.private, c.private) AS private, c.room_id, c.thread,
           c.user_id, c.agent_id, coalesce(r.project_id, c.project_id) AS project_id, c.version,
           coalesce(c.room_id, c.id) AS member_of
    FROM conversations AS c
    LEFT JOIN conversations AS r ON r.tenant_id = c.tenant_id AND r.id = c.room_id
    WHERE c.tenant_id = $1 AND c.id = $2
), selves AS (
    SELECT o.id FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id AND o.id <> u.id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    WHERE u.tenant_id = $1 AND u.id = $3
)
SELECT here.*,
       coalesce((SELECT u.admin FROM users AS u WHERE u.tenant_id = $1 AND u.id = $3), false) AS asker_admin,
       (SELECT m.left_at IS NULL FROM members AS m
        WHERE m.tenant_id = $1 AND m.conversation_id = here.member_of AND m.user_id = $3) AS joined,
       ARRAY(SELECT m.user_id FROM members AS m
             WHERE m.tenant_id = $1 AND m.conversation_id = here.member_of AND m.left_at IS NOT NULL) AS gone,
       p.slug AS project_slug, p.isolated,
       (SELECT pm.role FROM project_members AS pm
        WHERE pm.tenant_id = $1 AND pm.project_id = here.project_id
              AND (pm.user_id = $3 OR pm.user_id IN (SELECT id FROM selves))
        ORDER BY array_position(ARRAY['admin', 'write', 'read'], pm.role) LIMIT 1) AS role,
       ARRAY(SELECT id FROM selves ORDER BY id) AS selves,
       ARRAY(SELECT (c.namespace, c.kind, c.private, c.pooled, pm.role)
             FROM conversations AS c
             LEFT JOIN project_members AS pm ON pm.tenant_id = $1 AND pm.project_id = c.project_id AND pm.user_id = c.user_id
             WHERE c.tenant_id = $1 AND c.project_id = here.project_id AND c.kind <> 'thread'
             ORDER BY c.namespace) AS pool
FROM here
LEFT JOIN projects AS p ON p.tenant_id = $1 AND p.id = here.project_id
