-- name: notice_begin
-- Get the destination of a room's privacy notice and its recording policy; no row when the notice is posted already.
-- The first `message` is stored as the one that the notice follows, and never replaced.
UPDATE conversations SET noticed_at = coalesce(noticed_at, :now), notice_for = coalesce(notice_for, :message)
WHERE tenant_id = :tenant_id AND id = :room_id AND kind = 'room' AND notice_id IS NULL
RETURNING id, recording, platform, workspace, kind, name, thread, private, notice_for AS message,
    NULL AS user_external_id

-- name: notices_pending
-- List the rooms whose privacy notice is not known to be posted.
SELECT id, notice_for FROM conversations
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND notice_for IS NOT NULL
      AND notice_id IS NULL
ORDER BY id

-- name: notice_posted
-- Record that a room's privacy notice is posted.
UPDATE conversations SET notice_id = :external_id WHERE tenant_id = :tenant_id AND id = :room_id
