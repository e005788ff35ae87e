-- name: user_serialize
-- Let one transaction at a time count and add what a person has (see People.serialize).
SELECT FROM users WHERE tenant_id = :tenant_id AND id = :user_id FOR NO KEY UPDATE

-- name: users_linked
-- List the other users that belong to the same person.
SELECT u.id, o.id AS other
FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id AND o.id <> u.id
     AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
WHERE u.tenant_id = :tenant_id AND u.id = ANY (:user_ids::uuid[])
ORDER BY u.id, o.id

-- name: users_link
-- Make one person of everyone linked to `user_id` and everyone linked to `other_id`. Who opted out with one of them has
-- opted out with all.
WITH people AS MATERIALIZED (
    SELECT u.id, u.opted_out FROM users AS u
    WHERE u.tenant_id = :tenant_id
          AND coalesce(u.person_id, u.id) IN (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = :tenant_id
              AND id IN (:user_id, :other_id))
)
UPDATE users
SET person_id = (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = :tenant_id AND id = :other_id),
    opted_out = (SELECT bool_or(opted_out) FROM people)
WHERE tenant_id = :tenant_id AND id IN (SELECT id FROM people)
RETURNING opted_out

-- name: users_unlink
-- Make a user a person of their own again; whoever opted out stays so with each of them. If the others were grouped
-- under this user's id, they get another of their ids.
WITH others AS (
    SELECT id FROM users WHERE tenant_id = :tenant_id AND id <> :user_id
           AND coalesce(person_id, id) = (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = :tenant_id
               AND id = :user_id)
)
UPDATE users
SET person_id = CASE WHEN id = :user_id THEN NULL ELSE (SELECT id FROM others ORDER BY id LIMIT 1) END
WHERE tenant_id = :tenant_id AND (id = :user_id OR id IN (SELECT id FROM others))
RETURNING id

-- name: person_set
-- Record that a person opted out of being stored, or in again, with all users that they are; or (`opted_out` NULL) disable
-- them, or (`disabled_at` NULL, too) enable them again.
UPDATE users AS u
SET opted_out = coalesce(:opted_out::boolean, u.opted_out),
    disabled_at = CASE WHEN :opted_out::boolean IS NULL THEN :disabled_at::timestamptz ELSE u.disabled_at END
WHERE u.tenant_id = :tenant_id
      AND coalesce(u.person_id, u.id) = (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = :tenant_id
          AND id = :user_id)

-- name: users_ensure
-- Create users that do not exist yet, with their ids on a platform, and record what it says of them (NULL: nothing), as
-- of a time.
WITH new AS MATERIALIZED (
    SELECT * FROM unnest(:external_ids::text[], :ids::uuid[], :names::text[], :trusts::text[], :stated_at::timestamptz[],
                         :timezones::text[])
         AS n (external_id, id, name, trust, stated_at, timezone)
), people AS (
    INSERT INTO users (tenant_id, id, name, created_at)
    SELECT :tenant_id, id, name, :now FROM new ORDER BY id
    ON CONFLICT DO NOTHING
)
INSERT INTO identities AS i (tenant_id, platform, workspace, external_id, user_id, trust, trust_stated_at, timezone)
SELECT :tenant_id, :platform, :workspace, external_id, id, trust, stated_at, timezone FROM new ORDER BY external_id
ON CONFLICT (tenant_id, platform, workspace, external_id)
    DO UPDATE SET trust = excluded.trust, trust_stated_at = excluded.trust_stated_at, timezone = excluded.timezone
    WHERE excluded.trust_stated_at >= coalesce(i.trust_stated_at, '-infinity')

-- name: identities_set_trust
-- Record what a platform says of people as of a time, in the order of their ids: others may do so at the same time. What
-- was said of a later time stays, and of who opted out the time zone. Returns the users whose time zone is another one now.
WITH stated AS (
    SELECT * FROM unnest(:external_ids::text[], :trusts::text[], :stated_at::timestamptz[], :timezones::text[])
         AS s (external_id, trust, at, timezone)
), locked AS MATERIALIZED (
    SELECT i.external_id, i.user_id, i.timezone AS before FROM identities AS i
    WHERE i.tenant_id = :tenant_id AND i.platform = :platform AND i.workspace = :workspace
          AND i.external_id IN (SELECT external_id FROM stated)
    ORDER BY i.external_id
    FOR NO KEY UPDATE
)
UPDATE identities AS i SET trust = stated.trust, trust_stated_at = stated.at,
    timezone = CASE WHEN u.opted_out THEN i.timezone ELSE stated.timezone END
FROM stated JOIN locked USING (external_id) JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = locked.user_id
WHERE i.tenant_id = :tenant_id AND i.platform = :platform AND i.workspace = :workspace
      AND i.external_id = stated.external_id AND stated.at >= coalesce(i.trust_stated_at, '-infinity')
RETURNING CASE WHEN locked.before IS DISTINCT FROM i.timezone THEN i.user_id END AS moved

-- name: identities_find
-- Find users by their ids on a platform.
SELECT i.external_id, u.id, u.name, u.admin, u.opted_out
FROM identities AS i JOIN users AS u ON u.tenant_id = i.tenant_id AND u.id = i.user_id
WHERE i.tenant_id = :tenant_id AND i.platform = :platform AND i.workspace = :workspace
      AND i.external_id = ANY (:external_ids::text[])

-- name: identities_of_workspace
-- List the ids on a platform of everybody who is known in a workspace; `holding`: of those whose memory something opens from
-- outside a chat, or is told of it: a key, a web session, a login, a login link, a code that links accounts or a webhook, of theirs
-- or of a user linked with them.
WITH opened AS (
    SELECT user_id FROM api_keys WHERE tenant_id = :tenant_id AND revoked_at IS NULL
    UNION SELECT user_id FROM web_sessions WHERE tenant_id = :tenant_id
    UNION SELECT user_id FROM openid_logins WHERE tenant_id = :tenant_id
    UNION SELECT user_id FROM one_time_codes WHERE tenant_id = :tenant_id
    UNION SELECT user_id FROM webhooks WHERE tenant_id = :tenant_id
), people AS (
    SELECT coalesce(u.person_id, u.id) AS id FROM opened AS o JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = o.user_id
)
SELECT i.external_id FROM identities AS i JOIN users AS u ON u.tenant_id = i.tenant_id AND u.id = i.user_id
WHERE i.tenant_id = :tenant_id AND i.platform = :platform AND i.workspace = :workspace
      AND (NOT :holding::boolean OR coalesce(u.person_id, u.id) IN (SELECT id FROM people))
ORDER BY i.external_id

-- name: chat_accounts
-- List the accounts of a person on chat platforms, with all of their users. With a conversation: none, unless it is a DM of
-- this user that reads rooms.
SELECT i.platform, i.workspace, i.external_id
FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
JOIN identities AS i ON i.tenant_id = :tenant_id AND i.user_id = o.id AND i.platform NOT IN ('console', 'rest')
WHERE u.tenant_id = :tenant_id AND u.id = :user_id
      AND (:dm_id::uuid IS NULL OR u.reads_rooms AND EXISTS (
          SELECT FROM conversations AS c
          WHERE c.tenant_id = :tenant_id AND c.id = :dm_id AND c.kind = 'dm' AND c.user_id = u.id))
ORDER BY 1, 2, 3

-- name: user_disabled
-- Since when a person is disabled, by any user that they are; NULL: they are not.
SELECT min(o.disabled_at) FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
     AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
WHERE u.tenant_id = :tenant_id AND u.id = :user_id

-- name: users_get
-- Get the names of users, whether they are admins, and whether they have opted out.
SELECT id, name, admin, opted_out FROM users WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: user_set
-- Make a user an admin of the tenant or no longer one, record whether the DMs of one account read the rooms that its person
-- is in, or set all that a person has set for themselves (JSON text), with when; NULL leaves the others as they are. Linked
-- accounts keep their own. The invitations of who is no admin any more end for good, and so does every link that signs in
-- somebody else: they may have made it.
WITH ended AS (
    DELETE FROM one_time_codes
    WHERE NOT :admin::boolean AND tenant_id = :tenant_id
          AND (user_id = :user_id AND purpose = 'invite' OR user_id <> :user_id AND purpose = 'login')
)
UPDATE users
SET admin = coalesce(:admin::boolean, admin), reads_rooms = coalesce(:reads_rooms, reads_rooms),
    settings = coalesce(:settings, settings), settings_at = coalesce(:settings_at, settings_at)
WHERE tenant_id = :tenant_id AND id = :user_id

-- name: names_all
-- List the names of everybody in the tenant.
SELECT DISTINCT name FROM users WHERE tenant_id = :tenant_id ORDER BY name

-- name: admins_list
-- List the admins of the tenant, those who were known first before the others, and whether each has ever signed in to the web
-- pages, as far as that is still known.
SELECT u.id, u.name,
       EXISTS (SELECT FROM web_sessions AS w WHERE w.tenant_id = :tenant_id AND w.user_id = u.id)
       OR EXISTS (SELECT FROM openid_logins AS o WHERE o.tenant_id = :tenant_id AND o.user_id = u.id)
       OR EXISTS (SELECT FROM audit_events AS a WHERE a.tenant_id = :tenant_id AND a.act = 'signed.in'
                  AND u.id = ANY (a.user_ids)) AS signed_in
FROM users AS u
WHERE u.tenant_id = :tenant_id AND u.admin
ORDER BY u.created_at, u.id

-- name: names_stored
-- List every name under which something of these people is stored.
SELECT name FROM users WHERE tenant_id = :tenant_id AND id = ANY (:user_ids::uuid[])
UNION SELECT author FROM messages WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND agent_id IS NULL
UNION SELECT author FROM memories WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
UNION SELECT author FROM facts WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
UNION SELECT author FROM landmarks WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])

-- name: messages_mentioning
-- List the messages that mention any of these people.
SELECT id FROM messages WHERE tenant_id = :tenant_id AND mentions && :user_ids::uuid[] ORDER BY at, seq

-- name: users_blank_names
-- Replace the names of users. Who settled a landmark is stored by name alone: it is replaced unless another user has it.
WITH settled AS (
    UPDATE landmarks SET settled_by = :blank
    WHERE tenant_id = :tenant_id AND settled_by = ANY (:names::text[])
          AND NOT EXISTS (SELECT FROM users AS u WHERE u.tenant_id = :tenant_id AND u.name = settled_by
                          AND NOT u.id = ANY (:user_ids::uuid[]))
)
UPDATE users SET name = :blank WHERE tenant_id = :tenant_id AND id = ANY (:user_ids::uuid[])

-- name: users_restore_names
-- Name users again whose names were erased, but for those that another message is naming just now.
UPDATE users AS u SET name = new.name
FROM unnest(:ids::uuid[], :names::text[]) AS new (id, name)
JOIN (SELECT id FROM users WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND name = :blank
      FOR NO KEY UPDATE SKIP LOCKED) AS nameless USING (id)
WHERE u.tenant_id = :tenant_id AND u.id = new.id

-- name: entry_access
-- Get every fact that access to entries is judged by, as of now: the other users that a person is; the teams that they
-- are a member of; those that entries of theirs are shared with; and their projects, with the best role that any of
-- their users has in each; what they have set for themselves, of which the latest change counts (NULL where nothing is
-- set); and the time zone that a platform says. No row for an unknown user.
WITH own AS MATERIALIZED (
    SELECT o.id FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    WHERE u.tenant_id = :tenant_id AND u.id = :user_id
)
SELECT u.name, ARRAY(SELECT id FROM own WHERE id <> :user_id ORDER BY id) AS linked,
       ARRAY(SELECT DISTINCT t.team_id FROM team_members AS t
             WHERE t.tenant_id = :tenant_id AND t.user_id IN (SELECT id FROM own) ORDER BY 1) AS teams,
       ARRAY(SELECT DISTINCT substr(m.namespace, 6)::uuid FROM memories AS m
             WHERE m.tenant_id = :tenant_id AND starts_with(m.namespace, 'team:')
                   AND m.user_id = ANY (ARRAY(SELECT id FROM own)) ORDER BY 1) AS shared_with,
       ARRAY(SELECT (p.id, p.slug, p.isolated,
                     (array_agg(m.role ORDER BY array_position(ARRAY['admin', 'write', 'read'], m.role)))[1])
             FROM project_members AS m JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = m.project_id
             WHERE m.tenant_id = :tenant_id AND m.user_id IN (SELECT id FROM own)
             GROUP BY p.id, p.slug, p.isolated ORDER BY p.slug, p.id) AS projects,
       s.settings, s.settings_at,
       (SELECT i.timezone FROM identities AS i
        WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (ARRAY(SELECT id FROM own)) AND i.timezone IS NOT NULL
        ORDER BY i.user_id <> :user_id, i.platform, i.workspace LIMIT 1) AS platform_zone
FROM users AS u LEFT JOIN LATERAL (
    SELECT p.settings, p.settings_at FROM users AS p
    WHERE p.tenant_id = :tenant_id AND p.id = ANY (ARRAY(SELECT id FROM own)) AND p.settings IS NOT NULL
    ORDER BY p.settings_at DESC, p.id LIMIT 1
) AS s ON true
WHERE u.tenant_id = :tenant_id AND u.id = :user_id

-- name: user_home
-- Get the workspace of a chat platform, or else of the terminal, in which a user is known.
SELECT i.platform, i.workspace FROM identities AS i
WHERE i.tenant_id = :tenant_id AND i.user_id = :user_id AND i.platform <> 'rest'
ORDER BY i.platform = 'console', i.platform, i.workspace
LIMIT 1

-- part: users_trusted_rows
-- Whether these users are members wherever they are known, as their platform said when it last did. Where it has not yet,
-- their latest stored message there counts, but for those in DMs on Discord, which says nothing of people there. Of a chat
-- platform where there is none nothing is known, so it is not enough; the terminal vouches for everybody, and
-- of the API counts what the admin who invited them vouched for. `homes`: of those alone who are known elsewhere than there.
SELECT coalesce(bool_and(coalesce(i.trust, latest.trust, CASE WHEN i.platform = 'console' THEN 'member' ELSE 'guest' END) = 'member'),
                false)
FROM identities AS i
LEFT JOIN LATERAL (
    SELECT m.trust FROM messages AS m
    JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
    WHERE m.tenant_id = :tenant_id AND m.user_id = i.user_id AND m.agent_id IS NULL
          AND c.platform = i.platform AND c.workspace = i.workspace AND (c.kind <> 'dm' OR c.platform <> 'discord')
    ORDER BY m.at DESC, m.seq DESC
    LIMIT 1
) AS latest ON true
WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (:user_ids::uuid[]) AND (i.platform <> 'rest' OR i.trust IS NOT NULL)
      AND (NOT :homes::boolean OR EXISTS (SELECT FROM identities AS home WHERE home.tenant_id = :tenant_id
                                          AND home.user_id = i.user_id AND home.platform <> 'rest'))

-- name: users_trusted
-- Whether users are members, as `users_trusted_rows` says.
{{users_trusted_rows}}

-- name: people_known
-- Find people by how a word of their name begins, whom somebody may know of: who is in a public room (`public`: they may
-- enter those) or in one of theirs (`room_ids`), in one of their teams or projects, or, for who may enter public rooms, on
-- no chat platform at all. One user for each person, and on which chat platforms that is, but not whether they ever wrote
-- over the API; not those of `user_ids`, nor who has no name (`nameless`).
SELECT DISTINCT ON (u.name, coalesce(u.person_id, u.id)) u.id, u.name,
       ARRAY(SELECT DISTINCT i.platform FROM identities AS i
             WHERE i.tenant_id = :tenant_id AND i.user_id = u.id AND i.platform <> 'rest' ORDER BY 1) AS platforms
FROM users AS u
WHERE u.tenant_id = :tenant_id AND NOT u.id = ANY (:user_ids::uuid[]) AND u.name <> :nameless
      AND (starts_with(lower(u.name), :beginning) OR strpos(lower(u.name), ' ' || :beginning) > 0)
      AND (EXISTS (SELECT FROM members AS m JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
                   WHERE m.tenant_id = :tenant_id AND m.user_id = u.id AND m.left_at IS NULL AND c.kind = 'room'
                         AND (:public::boolean AND NOT c.private OR c.id = ANY (:room_ids::uuid[])))
           OR EXISTS (SELECT FROM team_members AS t
                      WHERE t.tenant_id = :tenant_id AND t.user_id = u.id AND t.team_id = ANY (:team_ids::uuid[]))
           OR EXISTS (SELECT FROM project_members AS p
                      WHERE p.tenant_id = :tenant_id AND p.user_id = u.id AND p.project_id = ANY (:project_ids::uuid[]))
           OR :public::boolean AND NOT EXISTS (SELECT FROM identities AS i
                          WHERE i.tenant_id = :tenant_id AND i.user_id = u.id AND i.platform <> 'rest'))
ORDER BY u.name, coalesce(u.person_id, u.id), u.id
LIMIT :limit
