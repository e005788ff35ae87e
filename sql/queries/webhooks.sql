-- name: webhook_insert
-- Store a new webhook.
INSERT INTO webhooks (tenant_id, id, user_id, name, url, pages, place, key_id, created_at)
VALUES (:tenant_id, :id, :user_id, :name, :url, :pages::text[], :place, :key_id, :now)

-- name: webhooks_list
-- List the webhooks of these users, oldest first.
SELECT id, user_id, name, url, pages, place, key_id, created_at, off_at, off_why, failures, failing_since, last_at, last_result
FROM webhooks WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
ORDER BY created_at, id

-- name: webhooks_delete
-- Delete webhooks, or all those of some users.
DELETE FROM webhooks WHERE tenant_id = :tenant_id AND (id = ANY (:ids::uuid[]) OR user_id = ANY (:user_ids::uuid[]))
RETURNING user_id

-- name: webhook_set
-- Switch a webhook on, as if it were new (`off_why` NULL), or off; what it was still to be told before that is not told.
UPDATE webhooks
SET off_at = CASE WHEN :off_why::text IS NULL THEN NULL ELSE :now::timestamptz END, off_why = :off_why, told = pg_current_snapshot(),
    message_id = NULL, message_at = NULL, message_until = NULL, failures = 0, failing_since = NULL, next_at = NULL
WHERE tenant_id = :tenant_id AND id = :id AND (off_at IS NULL) = (:off_why::text IS NOT NULL)
RETURNING user_id

-- name: webhooks_due
-- List the webhooks that may have something to be told and are not waiting after a failure.
SELECT w.id, w.user_id FROM webhooks AS w
WHERE w.tenant_id = :tenant_id AND w.off_at IS NULL AND (w.next_at IS NULL OR w.next_at <= :now)
      AND EXISTS (SELECT FROM webhook_changes AS c
                  WHERE c.tenant_id = :tenant_id AND c.xact >= w.told_before AND NOT pg_visible_in_snapshot(c.xact, w.told))
ORDER BY w.id

-- name: webhook_begin
-- Begin a message with all that a webhook is to be told; one that is on its way goes on as it is. Returns the webhook, with what
-- its person is now.
UPDATE webhooks AS w
SET message_id = coalesce(w.message_id, :message_id), message_at = coalesce(w.message_at, :now),
    message_until = coalesce(w.message_until, pg_current_snapshot())
FROM users AS u
WHERE w.tenant_id = :tenant_id AND w.id = :id AND w.off_at IS NULL AND u.tenant_id = :tenant_id AND u.id = w.user_id
RETURNING w.id, w.user_id, w.url, w.pages, w.place, w.key_id, w.message_id, w.message_at, w.failures, w.failing_since,
          u.admin, u.opted_out

-- name: webhook_message
-- List the changes that a message tells, each once, the first one first.
SELECT c.namespace, c.visibility, c.owner_id, c.changed FROM webhooks AS w
JOIN webhook_changes AS c ON c.tenant_id = :tenant_id AND c.xact >= w.told_before AND NOT pg_visible_in_snapshot(c.xact, w.told)
                             AND pg_visible_in_snapshot(c.xact, w.message_until)
WHERE w.tenant_id = :tenant_id AND w.id = :id AND w.message_id = :message_id
      AND CASE WHEN w.place IS NULL THEN c.changed <> 'messages' ELSE split_part(split_part(c.namespace, ':', 2), '.', 1) = w.place::text END
GROUP BY c.namespace, c.visibility, c.owner_id, c.changed
ORDER BY min(c.xact), c.namespace, c.changed

-- name: webhook_answered
-- Record how a message was answered (`result` NULL: it was not sent). `over`: what it tells was told. Else not before `next_at`; with
-- `off_why` no more at all. A webhook that was switched off or on, or deleted, meanwhile is left as it is.
UPDATE webhooks
SET told = CASE WHEN :over::boolean THEN message_until ELSE told END,
    message_id = CASE WHEN :over OR :off_why::text IS NOT NULL THEN NULL ELSE message_id END,
    message_at = CASE WHEN :over OR :off_why IS NOT NULL THEN NULL ELSE message_at END,
    message_until = CASE WHEN :over OR :off_why IS NOT NULL THEN NULL ELSE message_until END,
    failures = CASE WHEN :result::text IS NULL THEN failures WHEN :over THEN 0 ELSE failures + 1 END,
    failing_since = CASE WHEN :result IS NULL THEN failing_since WHEN :over THEN NULL ELSE coalesce(failing_since, :now) END,
    next_at = :next_at, last_at = CASE WHEN :result IS NULL THEN last_at ELSE :now END, last_result = coalesce(:result, last_result),
    off_at = CASE WHEN :off_why IS NULL THEN NULL ELSE :now::timestamptz END, off_why = :off_why
WHERE tenant_id = :tenant_id AND id = :id AND message_id = :message_id AND off_at IS NULL
RETURNING user_id

-- name: webhook_tried
-- Record how a webhook that its person tried was answered.
UPDATE webhooks SET last_at = :now, last_result = :result WHERE tenant_id = :tenant_id AND id = :id
