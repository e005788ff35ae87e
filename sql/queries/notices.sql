-- name: notice_begin
-- Get the destination of a room's privacy notice, its recording policy, and whether this is the first attempt to post
-- it; no row when the notice is posted already. The first `message` is stored as the one that the notice follows, and
-- never replaced.
UPDATE conversations AS c SET noticed_at = coalesce(c.noticed_at, :now), notice_for = coalesce(c.notice_for, :message)
FROM (
    SELECT id, noticed_at FROM conversations
    WHERE tenant_id = :tenant_id AND id = :room_id AND kind = 'room' AND notice_id IS NULL FOR UPDATE
) AS before
WHERE c.tenant_id = :tenant_id AND c.id = before.id
RETURNING c.id, recording, platform, workspace, kind, name, thread, private, notice_for AS message,
    NULL AS user_external_id, NULL::timestamptz AS since, before.noticed_at IS NULL AS first

-- name: notices_pending
-- List the rooms whose privacy notice is not known to be posted.
SELECT id, notice_for FROM conversations
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND notice_for IS NOT NULL
      AND notice_id IS NULL
ORDER BY id

-- name: notice_posted
-- Record that a room's privacy notice is posted.
UPDATE conversations SET notice_id = :external_id WHERE tenant_id = :tenant_id AND id = :room_id
