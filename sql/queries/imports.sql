-- name: import_begin
-- Record a run of an import into a workspace, and let what this transaction inserts carry its id.
WITH run AS (
    INSERT INTO imports (tenant_id, id, platform, workspace, source, begun_at, uploaded_by)
    VALUES (:tenant_id, :id, :platform, :workspace, :source, :now, :uploaded_by) ON CONFLICT DO NOTHING
)
SELECT set_config('nexus.import', :id::uuid::text, true)

-- name: import_mark
-- Record that a run has read everything, or (`undone`) that nothing of it is left.
UPDATE imports SET ended_at = CASE WHEN :undone::boolean THEN ended_at ELSE :now END,
                   undone_at = CASE WHEN :undone THEN coalesce(undone_at, :now) ELSE undone_at END
WHERE tenant_id = :tenant_id AND id = :id

-- name: imports_list
-- List the runs, newest first, with how many messages of each are still stored, how many of these are indexed, and in how
-- many rooms. A thread counts as its room; a DM as a room. `brought`: whether anything carries the id of the run, in any
-- workspace of the tenant.
SELECT i.id, i.platform, i.workspace, i.source, i.begun_at, i.ended_at, i.undone_at, i.uploaded_by,
       count(m.id) AS messages, count(m.id) FILTER (WHERE m.indexed) AS indexed,
       count(DISTINCT coalesce(c.room_id, c.id)) AS rooms,
       EXISTS (SELECT FROM messages AS b WHERE b.tenant_id = i.tenant_id AND b.import_id = i.id)
       OR EXISTS (SELECT FROM conversations AS b WHERE b.tenant_id = i.tenant_id AND b.import_id = i.id)
       OR EXISTS (SELECT FROM members AS b WHERE b.tenant_id = i.tenant_id AND b.import_id = i.id)
       OR EXISTS (SELECT FROM users AS b WHERE b.tenant_id = i.tenant_id AND b.import_id = i.id) AS brought
FROM imports AS i
LEFT JOIN (messages AS m JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id)
    ON m.tenant_id = i.tenant_id AND m.import_id = i.id AND c.platform = i.platform AND c.workspace = i.workspace
WHERE i.tenant_id = :tenant_id
GROUP BY i.tenant_id, i.id, i.platform, i.workspace
ORDER BY i.begun_at DESC, i.id, i.platform, i.workspace

-- name: import_messages
-- The messages that a run brought and that are still stored, the first `limit` of them, with their conversations.
SELECT id, conversation_id FROM messages WHERE tenant_id = :tenant_id AND import_id = :id ORDER BY id LIMIT :limit

-- name: imported_since
-- The messages that are stored from imports which began after a time, with the run of each. Read for a receipt, of which
-- only the digests of ids are known.
SELECT m.id, i.id AS run, i.source, i.begun_at
FROM (SELECT DISTINCT ON (id) id, source, begun_at FROM imports
      WHERE tenant_id = :tenant_id AND begun_at >= :since ORDER BY id, begun_at) AS i
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.import_id = i.id
ORDER BY i.begun_at, i.id, m.id

-- name: import_keep
-- Let messages belong to no import any more, since a platform has delivered them too: not those of an upload, whose words
-- may be others than the platform's.
UPDATE messages SET import_id = NULL
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND import_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM imports AS i WHERE i.tenant_id = messages.tenant_id AND i.id = messages.import_id
                          AND i.uploaded_by IS NOT NULL)

-- name: import_members_delete
-- Take those out of rooms whom a run made members, and who have no message there (then something else vouches for them).
DELETE FROM members AS m
WHERE m.tenant_id = :tenant_id AND m.import_id = :id
      AND NOT EXISTS (SELECT FROM messages AS s JOIN conversations AS c ON c.tenant_id = s.tenant_id
                          AND c.id = s.conversation_id
                      WHERE s.tenant_id = m.tenant_id AND s.user_id = m.user_id
                            AND coalesce(c.room_id, c.id) = m.conversation_id)
RETURNING m.conversation_id, m.user_id,
          (SELECT c.private FROM conversations AS c WHERE c.tenant_id = m.tenant_id AND c.id = m.conversation_id) AS private

-- name: import_delete_unused
-- Delete the conversations and people that a run made and that nothing else uses; returns how many.
SELECT conversations, people FROM delete_unused_of_import(:id)
