-- name: reminder_insert
-- Store a reminder; one that is stored already stays as it is.
INSERT INTO reminders (tenant_id, id, user_id, conversation_id, namespace, visibility, author, text, made_at, due_at, repeats)
VALUES (:tenant_id, :id, :user_id, :conversation_id, :namespace, :visibility, :author, :text, :now, :due_at, :repeats)
ON CONFLICT DO NOTHING

-- name: reminders_open
-- List the open reminders of a person whose ids begin with some digits, the next one first.
SELECT id, user_id, conversation_id, namespace, visibility, author, text, made_at, due_at, repeats, posted_at FROM reminders
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'open'
      AND starts_with(replace(id::text, '-', ''), :beginning)
ORDER BY due_at, id

-- name: reminder_take_due
-- Lock the earliest reminder that is due where this process delivers (`served`, see turns_unowned) and that no other one is
-- posting. With `position_id` (the terminal, where one person is in one conversation at a time) only one that is posted in that
-- conversation, or in a DM of `position_user_id`.
SELECT r.id, r.user_id, r.conversation_id, r.namespace, r.visibility, r.author, r.text, r.made_at, r.due_at, r.repeats,
       r.posted_at, c.platform, c.kind, c.agent_id,
       EXISTS (SELECT FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
                    AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
               WHERE u.tenant_id = :tenant_id AND u.id = r.user_id AND o.opted_out) AS opted_out
FROM reminders AS r JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = r.conversation_id
WHERE r.tenant_id = :tenant_id AND r.state = 'open' AND r.due_at <= :now
      AND ARRAY[c.platform, c.platform || ':' || c.workspace] && :served::text[]
      AND NOT r.id = ANY (:excluded_ids::uuid[])
      AND (:position_id::uuid IS NULL OR c.id = :position_id OR (c.kind = 'dm' AND c.user_id = :position_user_id))
ORDER BY r.due_at, r.id
LIMIT 1
FOR UPDATE OF r SKIP LOCKED

-- name: reminder_posted
-- Record that a reminder was posted (NULL: it was not), and when it is due again; NULL: it has ended.
UPDATE reminders SET posted_at = coalesce(:now, posted_at), due_at = coalesce(:next_at, due_at),
    state = CASE WHEN :next_at::timestamptz IS NULL THEN 'ended' ELSE 'open' END
WHERE tenant_id = :tenant_id AND id = :id

-- name: reminders_end
-- End reminders. Those that were posted stay, as ended, for forgetting to reach what was posted; the others are deleted.
-- Returns those that were open.
WITH gone AS (
    DELETE FROM reminders
    WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND state = 'open' AND posted_at IS NULL
    RETURNING id
), ended AS (
    UPDATE reminders SET state = 'ended'
    WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND state = 'open' AND posted_at IS NOT NULL
    RETURNING id
)
SELECT id FROM gone UNION ALL SELECT id FROM ended

-- name: reminders_ended_before
-- Delete reminders that have ended, were last posted before a time, and of which no post is stored any more: by a reminder
-- forgetting finds its posts.
DELETE FROM reminders AS r WHERE r.tenant_id = :tenant_id AND r.state = 'ended' AND r.posted_at < :before
    AND NOT EXISTS (SELECT FROM lineage AS l
                    JOIN turns AS t ON t.tenant_id = :tenant_id AND t.id = l.item_id
                    JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = t.reply_id
                    WHERE l.tenant_id = :tenant_id AND l.source_id = r.id AND l.item_kind = 'turn')
RETURNING r.id

-- name: reminders_refuse
-- Record that a platform will never accept the post of a reminder in a room or a thread, by its turn: it is not posted again,
-- and who asked is told.
UPDATE reminders AS r SET state = 'refused'
FROM turns AS t, lineage AS l, conversations AS c
WHERE r.tenant_id = :tenant_id AND t.tenant_id = :tenant_id AND t.id = :turn_id AND r.conversation_id = t.conversation_id
      AND l.tenant_id = :tenant_id AND l.item_id = t.id AND l.source_kind = 'reminder' AND l.source_id = r.id
      AND c.tenant_id = :tenant_id AND c.id = t.conversation_id AND c.kind IN ('room', 'thread')

-- name: reminder_take_refused
-- Lock a reminder that was refused where this process delivers (`served`, see turns_unowned), whose person is still to be
-- told and that no other one holds; with `position_user_id` (the terminal) only of that person. `isolated`: its room is
-- in an isolated project.
SELECT r.id, r.user_id, r.conversation_id, r.namespace, r.visibility, r.author, r.text, r.made_at, r.due_at, r.repeats,
       r.posted_at, c.platform, c.workspace, coalesce(o.title, c.title, o.name, c.name) AS room, u.opted_out,
       coalesce(p.isolated, false) AS isolated
FROM reminders AS r
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = r.user_id
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = r.conversation_id
LEFT JOIN conversations AS o ON o.tenant_id = :tenant_id AND o.id = c.room_id
LEFT JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = coalesce(o.project_id, c.project_id)
WHERE r.tenant_id = :tenant_id AND r.state = 'refused'
      AND ARRAY[c.platform, c.platform || ':' || c.workspace] && :served::text[]
      AND NOT r.id = ANY (:excluded_ids::uuid[]) AND (:position_user_id::uuid IS NULL OR r.user_id = :position_user_id)
ORDER BY r.due_at, r.id
LIMIT 1
FOR UPDATE OF r SKIP LOCKED
