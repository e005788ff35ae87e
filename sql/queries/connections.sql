-- name: connection_begin
-- Begin a connection of this process to a workspace. It ends the one before, and those of processes that have ended.
WITH ended AS (
    DELETE FROM connections
    WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace
          AND (process = :process OR process NOT IN (SELECT live_processes()))
)
INSERT INTO connections (tenant_id, id, platform, workspace, process)
VALUES (:tenant_id, :id, :platform, :workspace, :process)

-- name: connection_end
-- End the connections of this process to a workspace: what was read during them counts no more.
DELETE FROM connections
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND process = :process

-- name: membership_unread
-- List the private rooms of a workspace, by their ids on the platform, of which the members were not read during a
-- connection.
SELECT c.name FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.platform = :platform AND c.workspace = :workspace AND c.kind = 'room' AND c.private
      AND NOT EXISTS (SELECT FROM membership_readings AS r
                      WHERE r.tenant_id = :tenant_id AND r.room_id = c.id AND r.connection_id = :connection_id)
ORDER BY c.name

-- name: membership_recorded
-- List the recorded members of a room, with their ids on its platform.
SELECT m.user_id, i.external_id FROM members AS m
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
JOIN identities AS i ON i.tenant_id = :tenant_id AND i.user_id = m.user_id AND i.platform = c.platform
    AND i.workspace = c.workspace
WHERE m.tenant_id = :tenant_id AND m.conversation_id = :room_id AND m.left_at IS NULL

-- name: membership_confirm
-- Record that the recorded members of a private room are those of now, unless somebody else is recorded too or the
-- connection has ended. Returns a row if it is recorded.
INSERT INTO membership_readings (tenant_id, connection_id, room_id, read_at)
SELECT :tenant_id, k.id, c.id, :at FROM connections AS k
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = :room_id AND c.kind = 'room' AND c.private
WHERE k.tenant_id = :tenant_id AND k.id = :connection_id
      AND NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = :tenant_id AND m.conversation_id = :room_id
                      AND m.left_at IS NULL AND m.user_id <> ALL (:user_ids::uuid[]))
FOR KEY SHARE OF k
ON CONFLICT (tenant_id, connection_id, room_id) DO UPDATE SET read_at = excluded.read_at
RETURNING room_id

-- name: membership_doubt
-- Forget that the members of rooms were read, during any connection.
DELETE FROM membership_readings WHERE tenant_id = :tenant_id AND room_id = ANY (:room_ids::uuid[])

-- name: identities_of_workspace
-- List the ids on a platform of everybody who is known in a workspace.
SELECT external_id FROM identities
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace
ORDER BY external_id

-- name: holders_of_workspace
-- List the ids on a platform of everybody known in a workspace whose memory something opens from outside a chat: a key,
-- a web session, a login, a login link or a code that links accounts, of theirs or of a user linked with them.
WITH opened AS (
    SELECT user_id FROM api_keys WHERE tenant_id = :tenant_id AND revoked_at IS NULL
    UNION SELECT user_id FROM web_sessions WHERE tenant_id = :tenant_id
    UNION SELECT user_id FROM openid_logins WHERE tenant_id = :tenant_id
    UNION SELECT user_id FROM login_links WHERE tenant_id = :tenant_id
    UNION SELECT user_id FROM link_codes WHERE tenant_id = :tenant_id
), people AS (
    SELECT coalesce(u.person_id, u.id) AS id FROM opened AS o JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = o.user_id
)
SELECT i.external_id FROM identities AS i JOIN users AS u ON u.tenant_id = i.tenant_id AND u.id = i.user_id
WHERE i.tenant_id = :tenant_id AND i.platform = :platform AND i.workspace = :workspace
      AND coalesce(u.person_id, u.id) IN (SELECT id FROM people)
ORDER BY i.external_id
