-- name: conversations_ensure
-- Create conversations that do not exist yet, and return them as conversations_lock does: nobody else can have locked
-- them. `room_ids` names the room of each thread.
INSERT INTO conversations (tenant_id, id, kind, platform, workspace, name, namespace, private, room_id, thread,
                           user_id, agent_id, project_id, privacy_at, private_since, public_at, created_at)
SELECT :tenant_id, id, kind, :platform, :workspace, name, namespace, private, room_id, thread, user_id, agent_id,
    project_id, privacy_at, CASE WHEN private THEN privacy_at END,
    CASE WHEN NOT private THEN privacy_at END, :now
FROM unnest(:ids::uuid[], :kinds::text[], :names::text[], :namespaces::text[], :private::boolean[], :room_ids::uuid[],
            :threads::text[], :user_ids::uuid[],
            :agent_ids::uuid[], :project_ids::uuid[], :privacy_at::timestamptz[])
     AS new (id, kind, name, namespace, private, room_id, thread, user_id, agent_id, project_id, privacy_at)
ORDER BY room_id NULLS FIRST, id
ON CONFLICT DO NOTHING
RETURNING id, kind, coalesce(title, name) AS name, namespace, generation, private, room_id, thread, user_id, agent_id,
    project_id, last_seq, version, privacy_at, private_since, public_at, opened_at,
    coalesce((SELECT r.recording FROM conversations AS r
              WHERE r.tenant_id = :tenant_id AND r.id = conversations.room_id), recording) AS recording,
    outsiders, outsiders_at, follow_ups

-- name: conversations_lock
-- Lock conversations for writing, always in the same order: threads after the rooms that they follow (see
-- threads_follow_room). The ids are a subquery, so that one plan is as good as one made for their number.
SELECT c.id, c.kind, coalesce(c.title, c.name) AS name, c.namespace, c.generation, c.private, c.room_id, c.thread,
       c.user_id,
       c.agent_id, c.project_id, c.last_seq, c.version, c.privacy_at, c.private_since, c.public_at, c.opened_at,
       coalesce((SELECT r.recording FROM conversations AS r WHERE r.tenant_id = :tenant_id AND r.id = c.room_id),
           c.recording) AS recording,
       c.outsiders, c.outsiders_at, c.follow_ups
FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.id = ANY (ARRAY(SELECT unnest(:ids::uuid[])))
ORDER BY c.room_id IS NOT NULL, c.id
FOR NO KEY UPDATE

-- name: conversation_get
-- Get one conversation. A thread has its room's project and privacy.
SELECT c.id, c.kind, coalesce(r.title, c.title, c.name) AS name, c.namespace, coalesce(r.private, c.private) AS private,
       c.room_id, c.thread, c.user_id, c.agent_id, coalesce(r.project_id, c.project_id) AS project_id, c.version, c.platform,
       c.workspace
FROM conversations AS c
LEFT JOIN conversations AS r ON r.tenant_id = c.tenant_id AND r.id = c.room_id
WHERE c.tenant_id = :tenant_id AND c.id = :id

-- name: session_set_name
-- Name a session, or (an empty name) forget what it, or each session of some people, was called.
UPDATE conversations SET name = :name
WHERE tenant_id = :tenant_id AND kind = 'session' AND (id = :id::uuid OR user_id = ANY (:user_ids::uuid[]))

-- name: conversations_bump_version
-- Raise the version of conversations whose messages changed other than by appending (an edit, an erasure).
UPDATE conversations SET version = version + 1 WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: conversation_versions
-- Get the versions of conversations.
SELECT id, version FROM conversations WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: room_set_private
-- Make a room private or public. A new namespace starts numbering at a multiple of 100, so that the position of its window does
-- not reveal how many messages came before.
UPDATE conversations
SET private = :private, namespace = :namespace, generation = :generation, version = version + 1, pooled = pooled
    AND :private, privacy_at = :at, private_since = CASE WHEN :private THEN :at::timestamptz END,
    public_at = CASE WHEN :private THEN public_at ELSE greatest(public_at, :at) END, opened_at = CASE WHEN namespace = :namespace THEN opened_at ELSE :at END,
    last_seq = CASE WHEN namespace = :namespace THEN last_seq ELSE (last_seq + 99) / 100 * 100 END
WHERE tenant_id = :tenant_id AND id = :room_id

-- name: room_note_privacy
-- Record that a room's privacy was stated again, as it is; or (`past`) that it was public at a time, whatever it is now.
UPDATE conversations
SET privacy_at = CASE WHEN :past::boolean THEN privacy_at ELSE greatest(privacy_at, :at) END,
    private_since = CASE WHEN :past THEN private_since WHEN private THEN least(private_since, :at) END,
    public_at = CASE WHEN private AND NOT :past THEN public_at ELSE greatest(public_at, :at) END
WHERE tenant_id = :tenant_id AND id = :room_id

-- name: room_refile_after
-- Move what was sent in a room and its threads after a time, with its episodes, to the room's new namespace.
WITH moved AS (
    UPDATE messages AS m SET namespace = :namespace
    FROM conversations AS c
    WHERE m.tenant_id = :tenant_id AND c.tenant_id = :tenant_id AND (c.id = :room_id OR c.room_id = :room_id)
          AND m.conversation_id = c.id AND m.namespace = :before AND m.at >= :at
    RETURNING m.id
), found AS (
    UPDATE recall_index AS r SET namespace = :namespace
    FROM moved JOIN episodes AS e ON e.tenant_id = :tenant_id AND e.message_id = moved.id
    WHERE r.tenant_id = :tenant_id AND r.id = e.id
    RETURNING r.id
)
UPDATE recall_terms AS t SET namespace = :namespace FROM found WHERE t.tenant_id = :tenant_id AND t.item_id = found.id

-- name: room_states
-- Get who may read rooms now, and when the first message after a room's opening was sent. Imported history is filed by
-- it. No text is read.
SELECT c.id, c.private, c.generation > 0 AS reopened,
       CASE WHEN c.generation > 0 THEN
           (SELECT min(m.at) FROM messages AS m
            WHERE m.tenant_id = :tenant_id AND m.namespace = c.namespace AND m.conversation_id IN
                  (SELECT t.id FROM conversations AS t WHERE t.tenant_id = :tenant_id
                      AND (t.id = c.id OR t.room_id = c.id)))
       END AS since
FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.id = ANY (:room_ids::uuid[]) AND c.kind = 'room'

-- name: threads_follow_room
-- File a room's public threads in the room's namespace.
UPDATE conversations
SET namespace = :namespace, version = version + 1,
    last_seq = CASE WHEN namespace = :namespace THEN last_seq ELSE (last_seq + 99) / 100 * 100 END
WHERE tenant_id = :tenant_id AND room_id = :room_id

-- name: thread_set_archived
-- Record when a platform archived a thread; NULL when it is open again.
UPDATE conversations SET archived_at = :archived_at WHERE tenant_id = :tenant_id AND id = :thread_id AND kind = 'thread'

-- name: conversation_ids
-- List a conversation and, of a room, its threads; or the conversations of a project: rooms, DMs and sessions.
SELECT id FROM conversations
WHERE tenant_id = :tenant_id AND (id = :id::uuid OR room_id = :id OR project_id = :project_id::uuid) ORDER BY id

-- name: conversation_clear_titles
-- Forget the titles of a room and its threads.
UPDATE conversations SET title = NULL WHERE tenant_id = :tenant_id AND (id = :room_id OR room_id = :room_id)

-- name: conversations_clear_unused_names
-- Forget the titles of conversations in which nobody's message is left, and the names of sessions in which besides nothing
-- is left that their person stored there, or that was posted to them and is not replaced by the notice `retracted`.
UPDATE conversations AS c SET title = NULL, name = CASE
    WHEN c.kind <> 'session'
        OR EXISTS (SELECT FROM messages WHERE tenant_id = :tenant_id AND conversation_id = c.id
                   AND starts_with(external_id, 'post:') AND NOT ephemeral AND text <> :retracted)
        OR EXISTS (SELECT FROM memories WHERE tenant_id = :tenant_id AND namespace = c.namespace)
        OR EXISTS (SELECT FROM facts WHERE tenant_id = :tenant_id AND namespace = c.namespace)
        OR EXISTS (SELECT FROM landmarks WHERE tenant_id = :tenant_id AND namespace = c.namespace)
        OR EXISTS (SELECT FROM quarantine WHERE tenant_id = :tenant_id AND user_id = c.user_id AND namespace = c.namespace
                   AND state = 'pending')
        OR EXISTS (SELECT FROM reminders WHERE tenant_id = :tenant_id AND user_id = c.user_id AND namespace = c.namespace)
    THEN c.name ELSE '' END
WHERE c.tenant_id = :tenant_id AND c.id = ANY (:ids::uuid[]) AND (c.title IS NOT NULL OR c.kind = 'session')
      AND NOT EXISTS (SELECT FROM messages AS m
                      WHERE m.tenant_id = :tenant_id AND m.conversation_id = c.id AND m.agent_id IS NULL)

-- name: conversation_assign
-- Put a conversation into a project; NULL takes it out. Returns the project that it was in.
UPDATE conversations AS c SET project_id = :project_id, pooled = :pooled
FROM conversations AS previous
WHERE c.tenant_id = :tenant_id AND c.id = :conversation_id AND previous.tenant_id = c.tenant_id AND previous.id = c.id
RETURNING previous.project_id

-- name: conversations_leave_projects
-- Take the DMs and sessions of people, with all their users, out of projects that they are no members of; in an isolated
-- project they stay, and are not pooled. Returns which, of which project.
UPDATE conversations AS c SET project_id = CASE WHEN p.isolated THEN c.project_id END, pooled = false
FROM projects AS p, users AS owner
WHERE c.tenant_id = :tenant_id AND c.kind IN ('dm', 'session') AND p.tenant_id = :tenant_id AND p.id = c.project_id
      AND (c.pooled OR NOT p.isolated) AND owner.tenant_id = :tenant_id AND owner.id = c.user_id
      AND coalesce(owner.person_id, owner.id) IN (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = :tenant_id
          AND id = ANY (:user_ids::uuid[]))
      AND NOT EXISTS (SELECT FROM project_members AS m JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
                      WHERE m.tenant_id = :tenant_id AND m.project_id = p.id
                            AND coalesce(u.person_id, u.id) = coalesce(owner.person_id, owner.id))
RETURNING c.id, p.id AS project_id, p.isolated

-- name: members_ensure
-- Add people who speak in rooms as members. The first member of a room becomes its admin. A person who left a public
-- room and speaks there again is a member again; a private room requires a join: nobody is added if one of the senders in
-- private rooms may not speak there, who has left, or never joined a room that has members, unless the platform vouches
-- for them. Messages from before they left (imported history) bring nobody back. Returns the new members of private rooms,
-- or those who are refused.
WITH refused AS MATERIALIZED (
    SELECT sender.room, sender.person
    FROM unnest(:sender_rooms::uuid[], :sender_ids::uuid[], :vouched::boolean[]) AS sender (room, person, vouched)
    LEFT JOIN members AS m ON m.tenant_id = :tenant_id AND m.conversation_id = sender.room AND m.user_id = sender.person
    WHERE m.left_at IS NOT NULL
          OR (m.user_id IS NULL AND NOT sender.vouched
              AND EXISTS (SELECT FROM members AS o WHERE o.tenant_id = :tenant_id AND o.conversation_id = sender.room))
), changed AS (
    INSERT INTO members (tenant_id, conversation_id, user_id, joined_at, admin)
    SELECT :tenant_id, room, person, since,
           NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = :tenant_id AND m.conversation_id = room)
           AND row_number() OVER (PARTITION BY room ORDER BY n) = 1
    FROM unnest(:room_ids::uuid[], :user_ids::uuid[], :since::timestamptz[]) WITH ORDINALITY
         AS new (room, person, since, n)
    WHERE NOT EXISTS (SELECT FROM refused)
    ON CONFLICT (tenant_id, conversation_id, user_id) DO UPDATE SET left_at = NULL, joined_at = excluded.joined_at
        WHERE members.left_at <= excluded.joined_at
    RETURNING conversation_id, user_id, joined_at
)
SELECT changed.conversation_id, changed.user_id, false AS refused
FROM changed JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = changed.conversation_id AND c.private
UNION ALL
SELECT room, person, true FROM refused

-- name: member_join
-- Add a person to a room, unless they left it after `at` (imported history that is read again). `returning`: only one who
-- was a member of it before and left; a row of member_leave for who was never in it begins and ends at one time. Returns a
-- row when that changed who is in a private room.
WITH changed AS (
    INSERT INTO members (tenant_id, conversation_id, user_id, joined_at, admin)
    SELECT :tenant_id, :room_id, :user_id, :at, NOT EXISTS (SELECT FROM members WHERE tenant_id = :tenant_id
        AND conversation_id = :room_id)
    WHERE NOT :returning::boolean
          OR EXISTS (SELECT FROM members WHERE tenant_id = :tenant_id AND conversation_id = :room_id AND user_id = :user_id
                     AND joined_at < left_at)
    ON CONFLICT (tenant_id, conversation_id, user_id) DO UPDATE SET left_at = NULL, joined_at = excluded.joined_at
        WHERE members.left_at <= excluded.joined_at
    RETURNING conversation_id
)
SELECT c.id FROM changed JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = changed.conversation_id
                                                    AND c.private

-- name: member_leave
-- Record that a person left a room, unless they came back after `at`. Someone never seen there is recorded as well.
-- Returns a row when that changed who is in a private room.
WITH before AS (
    SELECT FROM members WHERE tenant_id = :tenant_id AND conversation_id = :room_id AND user_id = :user_id
), changed AS (
    INSERT INTO members (tenant_id, conversation_id, user_id, joined_at, left_at) VALUES (:tenant_id, :room_id,
        :user_id, :at, :at)
    ON CONFLICT (tenant_id, conversation_id, user_id) DO UPDATE SET left_at = excluded.left_at, admin = false
        WHERE members.left_at IS NULL AND members.joined_at <= excluded.left_at
    RETURNING conversation_id
)
SELECT c.id FROM changed JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = changed.conversation_id
                                                    AND c.private
WHERE EXISTS (SELECT FROM before)

-- name: access_context
-- Get every fact that composer.visibility decides by, as of now. MATERIALIZED is needed: row-level security keeps a
-- bare coalesce() out of index conditions, and every member of every room would be read. Whoever is a member of a project
-- is one with all their users, with the best role that any of them has. `names_somebody`: whether the name of anybody has
-- one of some `words`, in lower case.
WITH conversation AS MATERIALIZED (
    SELECT c.tenant_id, c.id, c.kind, coalesce(r.title, c.title, c.name) AS name, c.namespace,
           coalesce(r.private, c.private) AS private, c.room_id, c.thread,
           c.user_id, c.agent_id, coalesce(r.project_id, c.project_id) AS project_id, c.version,
           coalesce(r.outsiders, c.outsiders) AS outsiders, coalesce(c.room_id, c.id) AS member_of
    FROM conversations AS c
    LEFT JOIN conversations AS r ON r.tenant_id = c.tenant_id AND r.id = c.room_id
    WHERE c.tenant_id = :tenant_id AND c.id = :conversation_id
), linked_users AS (
    SELECT o.id FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id AND o.id <> u.id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    WHERE u.tenant_id = :tenant_id AND u.id = :asker_id
), project_people AS MATERIALIZED (
    SELECT coalesce(u.person_id, u.id) AS person,
           (array_agg(pm.role ORDER BY array_position(ARRAY['admin', 'write', 'read'], pm.role)))[1] AS role
    FROM conversation
    JOIN project_members AS pm ON pm.tenant_id = :tenant_id AND pm.project_id = conversation.project_id
    JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = pm.user_id
    GROUP BY 1
)
SELECT conversation.*,
       coalesce((SELECT u.admin FROM users AS u WHERE u.tenant_id = :tenant_id AND u.id = :asker_id),
           false) AS asker_admin,
       (SELECT m.left_at IS NULL FROM members AS m
        WHERE m.tenant_id = :tenant_id AND m.conversation_id = conversation.member_of AND m.user_id = :asker_id) AS joined,
       ARRAY(SELECT m.user_id FROM members AS m
             WHERE m.tenant_id = :tenant_id AND m.conversation_id = conversation.member_of AND m.left_at IS NOT NULL) AS departed,
       p.slug AS project_slug, p.isolated,
       (SELECT pp.role FROM project_people AS pp JOIN users AS u ON pp.person = coalesce(u.person_id, u.id)
        WHERE u.tenant_id = :tenant_id AND u.id = :asker_id) AS role,
       ARRAY(SELECT id FROM linked_users ORDER BY id) AS linked_users,
       coalesce(
           (SELECT s.settings ->> 'timezone' FROM users AS s
            WHERE s.tenant_id = :tenant_id AND s.id = ANY (ARRAY(SELECT id FROM linked_users) || :asker_id::uuid)
                  AND s.settings IS NOT NULL
            ORDER BY s.settings_at DESC, s.id LIMIT 1),
           (SELECT i.timezone FROM identities AS i
            WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (ARRAY(SELECT id FROM linked_users) || :asker_id::uuid) AND i.timezone IS NOT NULL
            ORDER BY i.user_id <> :asker_id, i.platform, i.workspace LIMIT 1)) AS zone,
       conversation.kind = 'dm' AND coalesce((SELECT u.reads_rooms FROM users AS u WHERE u.tenant_id = :tenant_id
           AND u.id = conversation.user_id AND u.id = :asker_id), false) AS reads_rooms,
       ARRAY(SELECT c.user_id FROM projects AS q JOIN conversations AS c ON c.tenant_id = q.tenant_id
                 AND c.project_id = q.id AND c.kind = 'dm' AND c.agent_id = conversation.agent_id
             WHERE conversation.kind = 'dm' AND q.tenant_id = :tenant_id AND q.isolated
                   AND c.user_id IN (SELECT id FROM linked_users)) AS isolated_linked_users,
       ARRAY(SELECT DISTINCT substr(m.namespace, 6)::uuid FROM memories AS m
             WHERE conversation.kind IN ('dm', 'session') AND m.tenant_id = :tenant_id AND starts_with(m.namespace, 'team:')
                   AND m.user_id = ANY (ARRAY(SELECT id FROM linked_users) || :asker_id::uuid) ORDER BY 1) AS teams,
       ARRAY(SELECT (c.namespace, c.kind, c.private, c.pooled, pp.role,
                     CASE WHEN c.kind = 'room' AND NOT c.private THEN coalesce(c.title, c.name) END)
             FROM conversations AS c
             LEFT JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = c.user_id
             LEFT JOIN project_people AS pp ON pp.person = coalesce(u.person_id, u.id)
             WHERE c.tenant_id = :tenant_id AND c.project_id = conversation.project_id AND c.kind <> 'thread'
             ORDER BY c.namespace) AS pool,
       :words::text[] <> '{}' AND EXISTS (
           SELECT FROM users AS u
           WHERE u.tenant_id = :tenant_id AND regexp_split_to_array(lower(u.name), '\W+') && :words::text[]
       ) AS names_somebody
FROM conversation
LEFT JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = conversation.project_id

-- name: room_set_recording
-- Set the recording policy of a room.
UPDATE conversations SET recording = :policy WHERE tenant_id = :tenant_id AND id = :room_id

-- name: room_set
-- Set whether what follows up an answer in a room's threads needs no mention, or, as was stated of a time, whether people of
-- other organisations read it too; NULL leaves the other as it is.
UPDATE conversations
SET follow_ups = coalesce(:follow_ups, follow_ups), outsiders = coalesce(:outsiders, outsiders),
    outsiders_at = CASE WHEN :outsiders::boolean IS NULL THEN outsiders_at ELSE :outsiders_at::timestamptz END
WHERE tenant_id = :tenant_id AND id = :room_id

-- name: conversations_followed
-- List the conversations of a workspace that are read on its platform, those with the latest messages first. What the
-- platform deleted is left out. What an import has stored counts as read. `began_at`, of what was not read yet: when
-- it was stored first, or its first message was sent.
SELECT c.id, c.kind, c.name, c.thread, i.external_id AS user_external_id, room.private, room.opened_at, c.history_changed_at,
       coalesce(c.read_to, CASE WHEN c.import_id IS NOT NULL THEN last.at END) AS read_to,
       CASE WHEN c.read_to IS NULL THEN
           (SELECT min(m.at) FROM messages AS m
            WHERE m.tenant_id = :tenant_id AND m.conversation_id = c.id AND m.import_id IS NULL AND m.at < c.created_at)
       END AS began_at, c.created_at
FROM conversations AS c
JOIN conversations AS room ON room.tenant_id = :tenant_id AND room.id = coalesce(c.room_id, c.id)
LEFT JOIN identities AS i ON i.tenant_id = c.tenant_id AND i.user_id = c.user_id AND i.platform = c.platform
                             AND i.workspace = c.workspace
LEFT JOIN LATERAL (SELECT m.at FROM messages AS m WHERE m.tenant_id = :tenant_id AND m.conversation_id = c.id
                   ORDER BY m.at DESC, m.seq DESC LIMIT 1) AS last ON true
WHERE c.tenant_id = :tenant_id AND c.platform = :platform AND c.workspace = :workspace AND c.kind = ANY (:kinds::text[])
      AND NOT EXISTS (SELECT FROM erased WHERE tenant_id = :tenant_id AND id = c.id)
ORDER BY last.at DESC NULLS LAST, c.id

-- name: conversations_set_read
-- Note until when all that was written in conversations was received, and that what is stored of them was compared with their
-- platform, unless their history was changed again since.
-- Or note when their history could not be read (`failed_at`; `changed_at` is then earlier than any change).
UPDATE conversations AS c
SET read_to = greatest(c.read_to, :read_to), read_failed_at = :failed_at,
    history_changed_at = CASE WHEN c.history_changed_at > read.changed_at THEN c.history_changed_at END
FROM unnest(:ids::uuid[], :changed_at::timestamptz[]) AS read (id, changed_at)
WHERE c.tenant_id = :tenant_id AND c.id = read.id

-- name: conversations_unread
-- List the conversations whose history could not be read since a time, and was not read again, with what a room is called that is
-- public.
SELECT c.platform, c.workspace, c.kind, c.name, CASE WHEN NOT c.private THEN c.title END AS title, c.thread, c.read_to
FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.read_failed_at >= :since
ORDER BY c.platform, c.workspace, c.read_to NULLS FIRST, c.id

-- name: conversations_skip
-- Note that what was written in a room and its threads until now, or (without one) anywhere, was received or was not
-- to be stored.
UPDATE conversations SET read_to = greatest(read_to, :now)
WHERE tenant_id = :tenant_id AND kind <> 'session' AND (:room_id::uuid IS NULL OR id = :room_id OR room_id = :room_id)

-- name: conversations_note_history_changed
-- Note that the history of rooms, of all DMs, or (with neither) of every conversation of a workspace was changed at once.
UPDATE conversations SET history_changed_at = :now
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND kind IN ('room', 'dm')
      AND CASE WHEN :direct::boolean THEN kind = 'dm' ELSE cardinality(:rooms::text[]) = 0 OR (kind = 'room' AND name = ANY (:rooms::text[])) END

-- name: rooms_with_later_ids
-- List the rooms of a workspace that have got other ids on their platform since, with those of these ids under which something
-- is stored itself.
SELECT c.name, c.later_ids,
       ARRAY(SELECT o.name FROM conversations AS o
             WHERE o.tenant_id = :tenant_id AND o.platform = c.platform AND o.workspace = c.workspace AND o.kind = 'room'
                   AND o.name = ANY (c.later_ids) AND o.id <> c.id) AS stored_ids
FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.platform = :platform AND c.workspace = :workspace AND c.kind = 'room' AND c.later_ids <> '{}'
ORDER BY c.name

-- name: room_add_id
-- Note that a room has another id on its platform: perhaps its first one again. `at`: since when, if that is said;
-- what is not later than the latest change is told again, and ignored.
UPDATE conversations SET later_ids = array_append(array_remove(later_ids, :external_id), :external_id),
                         id_changed_at = coalesce(:at, id_changed_at)
WHERE tenant_id = :tenant_id AND id = :room_id AND (name <> :external_id OR later_ids <> '{}')
      AND NOT coalesce(:at::timestamptz <= id_changed_at, false)

-- name: rooms_private
-- List the private rooms of a workspace, by their ids on the platform.
SELECT name FROM conversations
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND kind = 'room' AND private
ORDER BY name

-- part: rooms_joined_rows
-- List the rooms that any of these users is in now, each as it is now: those that they are a recorded member of, but of the
-- private rooms of a chat platform those that it says. It said at `asked_at` that they are in the rooms `present_ids`, and
-- admins of the rooms `managed_ids`; whoever has left one since is in it no more.
WITH recorded AS (
    SELECT m.conversation_id AS id FROM members AS m
    WHERE m.tenant_id = :tenant_id AND m.user_id = ANY (:user_ids::uuid[]) AND m.left_at IS NULL
), said AS (
    SELECT p.id FROM unnest(:present_ids::uuid[]) AS p (id)
    WHERE NOT EXISTS (SELECT FROM members AS m
                      WHERE m.tenant_id = :tenant_id AND m.conversation_id = p.id AND m.user_id = ANY (:user_ids::uuid[])
                            AND m.left_at > :asked_at)
)
SELECT c.id, c.namespace, coalesce(c.title, c.name) AS name, c.private, c.project_id,
       coalesce(p.isolated, false) AS isolated, c.platform, c.recording, c.pooled, p.slug AS project,
       c.id = ANY (:managed_ids::uuid[]) OR c.platform NOT IN ('slack', 'discord')
       AND EXISTS (SELECT FROM members AS o WHERE o.tenant_id = :tenant_id AND o.conversation_id = c.id AND o.admin
                   AND o.user_id = ANY (:user_ids::uuid[]) AND o.left_at IS NULL) AS managed
FROM conversations AS c LEFT JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = c.project_id
WHERE c.tenant_id = :tenant_id AND c.kind = 'room' AND c.id IN (SELECT id FROM recorded UNION SELECT id FROM said)
      AND CASE WHEN c.private AND c.platform <> 'console' THEN c.id IN (SELECT id FROM said)
               ELSE c.id IN (SELECT id FROM recorded) END

-- name: rooms_joined
-- The rooms of `rooms_joined_rows`, by namespace.
SELECT * FROM ({{rooms_joined_rows}}) AS joined ORDER BY namespace, id

-- name: room_members
-- List who is recorded to be in a room now, by name: `most` of them, after the first `skipped`, each with how many there
-- are. `admin`: who opened a room that is on no chat platform; of others their platform says it.
SELECT u.id, u.name, m.admin AND c.platform NOT IN ('slack', 'discord') AS admin, count(*) OVER () AS total
FROM members AS m
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
WHERE m.tenant_id = :tenant_id AND m.conversation_id = :room_id AND m.left_at IS NULL
ORDER BY lower(u.name), u.id
LIMIT :most OFFSET :skipped

-- name: rooms_managed
-- The public rooms among those of which their chat platform says that somebody is an admin (`managed_ids`), as
-- `rooms_joined_rows` has them: also where nobody has spoken since they were imported.
SELECT c.id, c.namespace, coalesce(c.title, c.name) AS name, c.private, c.project_id,
       coalesce(p.isolated, false) AS isolated, c.platform, c.recording, c.pooled, p.slug AS project, true AS managed
FROM conversations AS c LEFT JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = c.project_id
WHERE c.tenant_id = :tenant_id AND c.id = ANY (:managed_ids::uuid[]) AND c.kind = 'room' AND NOT c.private

-- part: waiting_talks_rows
-- The DMs and sessions of these users in which something of theirs waits for approval or a decision is proposed (since
-- `proposed_after`), and the other sessions of projects that they are an admin of in which a memory waits: each with whether
-- its project pools it, its owner's role and theirs there.
SELECT (namespace, kind, pooled, (SELECT r.role FROM project_members AS r
                                  JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = r.user_id
                                  JOIN users AS o ON o.tenant_id = :tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
                                  WHERE r.tenant_id = :tenant_id AND r.project_id = talks.project_id AND o.id = talks.user_id
                                  ORDER BY array_position(ARRAY['admin', 'write', 'read'], r.role) LIMIT 1),
        own, project_id, (SELECT r.role FROM project_members AS r
                          WHERE r.tenant_id = :tenant_id AND r.project_id = talks.project_id AND r.user_id = ANY (:user_ids::uuid[])
                          ORDER BY array_position(ARRAY['admin', 'write', 'read'], r.role) LIMIT 1))
FROM (
    SELECT q.namespace, coalesce(s.kind, 'dm') AS kind, coalesce(s.pooled, false) AS pooled, s.project_id, s.user_id, true AS own
    FROM (SELECT namespace FROM quarantine
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'pending'
          UNION SELECT namespace FROM landmarks
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'proposed'
                AND decided_at > :proposed_after) AS q
    LEFT JOIN conversations AS s ON s.tenant_id = :tenant_id AND s.kind = 'session' AND s.user_id = ANY (:user_ids::uuid[])
         AND s.namespace = q.namespace
    WHERE starts_with(q.namespace, 'dm:') OR starts_with(q.namespace, 'session:')
    UNION ALL
    SELECT s.namespace, s.kind, s.pooled, s.project_id, s.user_id, false
    FROM (SELECT DISTINCT project_id FROM project_members
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND role = 'admin') AS led
    JOIN conversations AS s ON s.tenant_id = :tenant_id AND s.project_id = led.project_id AND s.kind = 'session' AND s.pooled
         AND NOT s.user_id = ANY (:user_ids::uuid[])
    WHERE EXISTS (SELECT FROM quarantine AS q
                  WHERE q.tenant_id = :tenant_id AND q.namespace = s.namespace AND q.state = 'pending' AND q.kind = 'memory')
) AS talks
ORDER BY namespace

-- name: person_in_frame
-- What the frame of a page tells of a person: whether they are a member wherever they are known and an admin, on which
-- platforms they are, in which time zone, and in which talks (`waiting_talks_rows`) something waits; with each of their
-- rooms, by namespace (one row without an id: there is none).
SELECT of_person.*, joined.* FROM (
    SELECT ({{users_trusted_rows}}) AS trusted,
           EXISTS (SELECT FROM users AS u WHERE u.tenant_id = :tenant_id AND u.id = ANY (:user_ids::uuid[]) AND u.admin) AS admin,
           ARRAY(SELECT DISTINCT i.platform FROM identities AS i
                 WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (:user_ids::uuid[]) ORDER BY 1) AS platforms,
           (SELECT i.timezone FROM identities AS i
            WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (:user_ids::uuid[]) AND i.timezone <> ''
            ORDER BY i.user_id, i.platform, i.workspace, i.external_id LIMIT 1) AS zone,
           ARRAY({{waiting_talks_rows}}) AS talks
) AS of_person LEFT JOIN ({{rooms_joined_rows}}) AS joined ON true
ORDER BY joined.namespace, joined.id
