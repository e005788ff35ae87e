-- name: retractions_queue
-- Queue the posted parts of answers for retraction on their platforms: of stored answers, and of answers to these
-- questions that are still being written, but for those in some conversations. Of an answer that is not sent to the end,
-- the next part may be posted without being recorded, by a process that ended in between: it is looked for. Must run
-- before the questions are erased.
WITH answers AS (
    SELECT t.id, t.state, t.queued_at, c.platform, c.workspace, c.kind, c.name, c.thread, c.private,
           CASE WHEN m.agent_id IS NULL THEN m.external_id ELSE '' END AS message, i.external_id AS user_external_id,
           t.message_id = ANY (:question_ids::uuid[]) AS unasked
    FROM turns AS t
    JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
    JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
    LEFT JOIN identities AS i ON i.tenant_id = t.tenant_id AND i.user_id = m.user_id AND i.platform = c.platform
                                 AND i.workspace = c.workspace
    WHERE t.tenant_id = :tenant_id
          AND (t.reply_id = ANY (:reply_ids::uuid[]) OR t.message_id = ANY (:question_ids::uuid[])
               AND (t.reply_id IS NULL OR t.state <> 'sent'))
          AND NOT t.conversation_id = ANY (:excluded_conversations::uuid[])
), posts AS (
    SELECT a.*, d.external_id, NULL::integer AS part
    FROM answers AS a JOIN deliveries AS d ON d.tenant_id = :tenant_id AND d.turn_id = a.id AND d.part <> -1
    UNION ALL
    SELECT a.*, '', (SELECT count(*) FROM deliveries AS d
                     WHERE d.tenant_id = :tenant_id AND d.turn_id = a.id AND d.part >= 0)
    FROM answers AS a WHERE a.unasked AND a.state <> 'sent' AND a.platform NOT IN ('console', 'rest')
)
INSERT INTO retractions (tenant_id, platform, workspace, external_id, turn_id, kind, name, thread, private, message,
                         user_external_id, part, since)
SELECT :tenant_id, platform, workspace, external_id, id, kind, name, thread, private, message, user_external_id, part,
       queued_at
FROM posts
ON CONFLICT DO NOTHING

-- name: retraction_queue_post
-- Queue one post for retraction, whose turn may be gone already: by its id, or ('') as a part that is to be looked for.
INSERT INTO retractions (tenant_id, platform, workspace, external_id, turn_id, kind, name, thread, private, message,
                         user_external_id, part, since)
VALUES (:tenant_id, :platform, :workspace, :external_id, :turn_id, :kind, :name, :thread, :private, :message,
        :user_external_id, :part, :since)
ON CONFLICT DO NOTHING

-- name: retractions_pending
-- List queued retractions of a platform, or of one workspace of it (`slack:T123`), that are to be tried now: those first
-- that were not tried yet.
SELECT platform, workspace, kind, name, thread, private, message, user_external_id, turn_id, external_id, since, part,
       refused_since
FROM retractions
WHERE tenant_id = :tenant_id AND :served::text IN (platform, platform || ':' || workspace) AND retry_at <= :now
ORDER BY retry_at, workspace, turn_id, external_id LIMIT :limit

-- name: retraction_postpone
-- Try a retraction again later; `refused_since`: since when the platform refuses it.
UPDATE retractions SET retry_at = :retry_at, refused_since = :refused_since
WHERE tenant_id = :tenant_id AND turn_id = :turn_id AND external_id = :external_id

-- name: retractions_retry
-- Try the posts and files that a platform, or one workspace of it, refuses to delete, again now.
WITH file AS (
    UPDATE posted_files SET retry_at = '-infinity'
    WHERE tenant_id = :tenant_id AND :served::text IN (platform, platform || ':' || workspace) AND refused_since IS NOT NULL
)
UPDATE retractions SET retry_at = '-infinity'
WHERE tenant_id = :tenant_id AND :served::text IN (platform, platform || ':' || workspace) AND refused_since IS NOT NULL

-- name: retractions_refused
-- Count the posts, then the files, that their platform refuses to delete, by workspace, with the first time that it did.
SELECT 'answer' AS what, platform, workspace, count(*)::integer AS count, min(refused_since) AS since FROM retractions
WHERE tenant_id = :tenant_id AND refused_since IS NOT NULL AND external_id <> ''
GROUP BY platform, workspace
UNION ALL
SELECT 'file', platform, workspace, count(*)::integer, min(refused_since) FROM posted_files
WHERE tenant_id = :tenant_id AND refused_since IS NOT NULL
GROUP BY platform, workspace
ORDER BY what, platform, workspace

-- name: retractions_drop
-- Remove the retractions in some conversations, which were deleted on their platform.
DELETE FROM retractions AS r USING conversations AS c
WHERE r.tenant_id = :tenant_id AND c.tenant_id = :tenant_id AND c.id = ANY (:conversation_ids::uuid[])
      AND r.platform = c.platform AND r.workspace = c.workspace AND r.kind = c.kind AND r.name = c.name
      AND r.thread IS NOT DISTINCT FROM c.thread

-- name: retraction_done
-- Remove a retraction from the queue: the platform carried it out, or never will.
DELETE FROM retractions WHERE tenant_id = :tenant_id AND turn_id = :turn_id AND external_id = :external_id

-- name: turn_destination
-- Get where on its platform an answer is posted, and which parts of it are posted already. What an agent posts of itself
-- answers no message.
SELECT c.platform, c.workspace, c.kind, c.name, c.thread, c.private,
    CASE WHEN m.agent_id IS NULL THEN m.external_id ELSE '' END AS message,
    i.external_id AS user_external_id, t.queued_at AS since,
    ARRAY(SELECT (d.part, d.external_id) FROM deliveries AS d
          WHERE d.tenant_id = :tenant_id AND d.turn_id = t.id ORDER BY d.part) AS parts
FROM turns AS t
JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
LEFT JOIN identities AS i ON i.tenant_id = t.tenant_id AND i.user_id = m.user_id AND i.platform = c.platform
                             AND i.workspace = c.workspace
WHERE t.tenant_id = :tenant_id AND t.id = :turn_id

-- name: turn_may_show
-- Check whether the question of an answer is stored, and filed where its conversation is now (a room that is made public
-- begins a new namespace), and whether nothing that the answer is made from was erased or edited since it was read.
SELECT EXISTS (
    SELECT FROM turns AS t
    JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
    JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
    WHERE t.tenant_id = :tenant_id AND t.id = :turn_id AND m.namespace = c.namespace
) AND NOT EXISTS (
{{sources_changed}}
)

-- name: delivery_record
-- Record that a part of an answer is posted, with its id on the platform; no row when its question was erased.
INSERT INTO deliveries (tenant_id, turn_id, part, external_id, sent_at)
SELECT :tenant_id, t.id, :part, :external_id, :now
FROM turns AS t
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = t.message_id
WHERE t.tenant_id = :tenant_id AND t.id = :turn_id
ON CONFLICT (tenant_id, turn_id, part) DO UPDATE SET external_id = excluded.external_id
RETURNING part

-- name: delivered_by_us
-- Check whether a message on the platform is a posted answer or a privacy notice.
SELECT EXISTS (SELECT FROM deliveries WHERE tenant_id = :tenant_id AND external_id = :external_id)
       OR EXISTS (SELECT FROM conversations WHERE tenant_id = :tenant_id AND notice_id = :external_id)

-- name: delivery_take_deleted
-- Remove a posted part of an answer that was deleted on its platform, and get the answer. `direct`: it was in a DM; not
-- every platform says with whom.
DELETE FROM deliveries AS d USING turns AS t, conversations AS c
WHERE d.tenant_id = :tenant_id AND d.external_id = :external_id AND d.part >= 0
      AND t.tenant_id = :tenant_id AND t.id = d.turn_id AND t.reply_id IS NOT NULL
      AND c.tenant_id = :tenant_id AND c.id = t.conversation_id
      AND (c.id = :container_id OR c.room_id = :container_id
           OR :direct AND c.kind = 'dm' AND c.platform = :platform AND c.workspace = :workspace)
RETURNING t.reply_id
