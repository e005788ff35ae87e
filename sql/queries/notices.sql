-- name: notice_begin
-- Get the destination of a conversation's first notice, what it says (a room's recording policy; in a DM whether rooms
-- may be read there), and whether this is the first attempt to post it; no row when it is posted already. A DM gets one
-- while its person has not decided that, is no guest, and was not asked in a DM with another agent. The first `message` is stored as
-- the one that the notice follows, and never replaced.
UPDATE conversations AS c SET noticed_at = coalesce(c.noticed_at, :now), notice_for = coalesce(c.notice_for, :message)
FROM (
    SELECT b.id, b.noticed_at, i.external_id FROM conversations AS b
    LEFT JOIN users AS u ON u.tenant_id = b.tenant_id AND u.id = b.user_id
    LEFT JOIN identities AS i ON i.tenant_id = b.tenant_id AND i.user_id = b.user_id AND i.platform = b.platform
                              AND i.workspace = b.workspace
    WHERE b.tenant_id = :tenant_id AND b.id = :conversation_id AND b.notice_id IS NULL
          AND (b.kind = 'room'
               OR b.kind = 'dm' AND (b.noticed_at IS NOT NULL OR NOT u.reads_rooms AND i.trust IS DISTINCT FROM 'guest' AND NOT EXISTS (
                    SELECT FROM conversations AS other WHERE other.tenant_id = :tenant_id AND other.kind = 'dm'
                        AND other.user_id = b.user_id AND other.id <> b.id AND other.noticed_at IS NOT NULL)))
    ORDER BY i.external_id LIMIT 1 FOR UPDATE OF b
) AS before
WHERE c.tenant_id = :tenant_id AND c.id = before.id
RETURNING c.id, recording, platform, workspace, kind, name, thread, private, notice_for AS message,
    before.external_id AS user_external_id, NULL::timestamptz AS since, before.noticed_at IS NULL AS first

-- name: notices_pending
-- List the conversations whose first notice is not known to be posted.
SELECT id, notice_for FROM conversations
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND notice_for IS NOT NULL
      AND notice_id IS NULL
ORDER BY id

-- name: notice_posted
-- Record that a conversation's first notice is posted.
UPDATE conversations SET notice_id = :external_id WHERE tenant_id = :tenant_id AND id = :conversation_id
