-- name: linked
-- What for: the other users that people are. $1 tenant, $2 users.
SELECT u.id, o.id AS other
FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id AND o.id <> u.id
     AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
WHERE u.tenant_id = $1 AND u.id = ANY ($2::uuid[])
ORDER BY u.id, o.id

-- name: link_code_put
-- What for: a code that links whoever enters it. $1 tenant, $2 hash, $3 user, $4 expires at.
INSERT INTO link_codes (tenant_id, code_hash, user_id, expires_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id, code_hash) DO UPDATE SET user_id = excluded.user_id, expires_at = excluded.expires_at

-- name: link_code_take
-- What for: whose code this is, once. $1 tenant, $2 hash, $3 now.
DELETE FROM link_codes WHERE tenant_id = $1 AND code_hash = $2 AND expires_at > $3 RETURNING user_id

-- name: link_join
-- What for: all that user $2 is becomes one person with all that user $3 is. $1 tenant.
UPDATE users SET person_id = (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = $1 AND id = $3)
WHERE tenant_id = $1
      AND coalesce(person_id, id) = (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = $1 AND id = $2)

-- name: link_part
-- What for: user $2 is a person of their own again; if the others went by their id, they go by another of theirs. $1 tenant.
WITH others AS (
    SELECT id FROM users WHERE tenant_id = $1 AND id <> $2
           AND coalesce(person_id, id) = (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = $1 AND id = $2)
)
UPDATE users
SET person_id = CASE WHEN id = $2 THEN NULL ELSE (SELECT id FROM others ORDER BY id LIMIT 1) END
WHERE tenant_id = $1 AND (id = $2 OR id IN (SELECT id FROM others))
RETURNING id

-- name: user_opt
-- What for: a person opts out, or in again. $1 tenant, $2 user, $3 out.
UPDATE users SET opted_out = $3 WHERE tenant_id = $1 AND id = $2

-- name: room_set_recording
-- What for: what is kept of a room. $1 tenant, $2 room, $3 recording policy.
UPDATE conversations SET recording = $3 WHERE tenant_id = $1 AND id = $2

-- name: room_notice
-- What for: the first-use notice of a room, if it does not stand there yet: what is kept there, and after which message it
-- is posted, which is so once and for all. $1 tenant, $2 room, $3 the message that is kept, $4 now.
UPDATE conversations SET noticed_at = coalesce(noticed_at, $4), notice_for = coalesce(notice_for, $3)
WHERE tenant_id = $1 AND id = $2 AND kind = 'room' AND notice_id IS NULL
RETURNING id, recording, platform, workspace, kind, name, thread, private, notice_for AS message, NULL AS user_external_id

-- name: room_notices_open
-- What for: the notices that were to be posted and are not known to stand there. $1 tenant, $2 platform, $3 workspace.
SELECT id, notice_for FROM conversations
WHERE tenant_id = $1 AND platform = $2 AND workspace = $3 AND notice_for IS NOT NULL AND notice_id IS NULL
ORDER BY id

-- name: room_noticed
-- What for: the notice stands there. $1 tenant, $2 room, $3 its id on the platform.
UPDATE conversations SET notice_id = $3 WHERE tenant_id = $1 AND id = $2

-- name: command_run
-- What for: a command is run for the first event that brings it, and for no other. $1 tenant, $2 id, $3 now, $4 adapter,
-- $5 workspace, $6 the process that runs it, $7 what was called, as JSON text.
INSERT INTO commands (tenant_id, id, received_at, adapter, workspace, process, call)
VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb)
ON CONFLICT DO NOTHING RETURNING id

-- name: command_done
-- What for: what a command changes is changed, in this very transaction. $1 tenant, $2 id.
UPDATE commands SET done = true WHERE tenant_id = $1 AND id = $2

-- name: command_answered
-- What for: whoever gave a command has its answer: nothing of its words is kept. $1 tenant, $2 id.
UPDATE commands SET call = NULL WHERE tenant_id = $1 AND id = $2

-- name: commands_forget
-- What for: a person forgets everything: what they called and was not answered yet goes too, but for the command that does
-- this. $1 tenant, $2 user, $3 that command.
UPDATE commands AS c SET call = NULL
FROM identities AS i
WHERE c.tenant_id = $1 AND c.call IS NOT NULL AND c.id <> $3 AND i.tenant_id = $1 AND i.user_id = $2
      AND i.platform = c.adapter AND i.workspace = c.workspace AND i.external_id = c.call -> 'incoming' ->> 'user'

-- name: commands_adopt
-- What for: take over the commands that a process that is no more left unanswered (see turns_adopt). $1 tenant, $2 the new
-- process, $3 adapter, $4 workspace.
UPDATE commands AS c SET process = $2
WHERE c.tenant_id = $1 AND c.call IS NOT NULL AND c.process <> $2 AND c.adapter = $3 AND c.workspace = $4
      AND NOT EXISTS (
          SELECT FROM pg_locks AS l
          WHERE l.locktype = 'advisory' AND l.objsubid = 1
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (l.classid::bigint << 32 | l.objid::bigint) = c.process)
RETURNING c.id, c.received_at, c.call, c.done

-- name: people_said_since
-- What for: which messages of people we hold of a conversation, by the platform's ids, and since when they are as we have
-- them, to compare with what stands there. $1 tenant, $2 conversation, $3 since, $4 at most.
SELECT external_id, coalesce(edited_at, at) AS changed_at FROM messages
WHERE tenant_id = $1 AND conversation_id = $2 AND at >= $3 AND agent_id IS NULL
ORDER BY at DESC, seq DESC
LIMIT $4

-- name: retractions_note
-- What for: the posted parts of withdrawn answers are to be taken back on their platforms. Noted before the questions are
-- erased. $1 tenant, $2 ids of the answers in the log.
INSERT INTO retractions (tenant_id, platform, workspace, external_id, turn_id, kind, name, thread, private, message,
                         user_external_id)
SELECT $1, c.platform, c.workspace, d.external_id, t.id, c.kind, c.name, c.thread, c.private, m.external_id, i.external_id
FROM turns AS t
JOIN deliveries AS d ON d.tenant_id = t.tenant_id AND d.turn_id = t.id AND d.part >= 0
JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
LEFT JOIN identities AS i ON i.tenant_id = t.tenant_id AND i.user_id = m.user_id AND i.platform = c.platform
                             AND i.workspace = c.workspace
WHERE t.tenant_id = $1 AND t.reply_id = ANY ($2::uuid[])
ON CONFLICT DO NOTHING

-- name: retractions_of_platform
-- What for: what is still to be taken back. $1 tenant, $2 platform, $3 at most.
SELECT platform, workspace, kind, name, thread, private, message, user_external_id, turn_id, external_id
FROM retractions WHERE tenant_id = $1 AND platform = $2
ORDER BY workspace, turn_id, external_id LIMIT $3

-- name: retraction_done
-- What for: the platform shows it, or never will. $1 tenant, $2 turn, $3 external id.
DELETE FROM retractions WHERE tenant_id = $1 AND turn_id = $2 AND external_id = $3

-- name: conversations_of_platform
-- What for: where to read on after an outage. $1 tenant, $2 platform, $3 workspace.
SELECT c.id, c.kind, c.name, c.thread, c.seen_id, c.seen_at, i.external_id AS user_external_id
FROM conversations AS c
LEFT JOIN identities AS i ON i.tenant_id = c.tenant_id AND i.user_id = c.user_id AND i.platform = c.platform
                             AND i.workspace = c.workspace
WHERE c.tenant_id = $1 AND c.platform = $2 AND c.workspace = $3 AND c.seen_id IS NOT NULL
ORDER BY c.seen_at DESC, c.id

-- name: turn_destination
-- What for: where on its platform an answer goes. $1 tenant, $2 turn.
SELECT c.platform, c.workspace, c.kind, c.name, c.thread, c.private, m.external_id AS message, i.external_id AS user_external_id
FROM turns AS t
JOIN conversations AS c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
LEFT JOIN identities AS i ON i.tenant_id = t.tenant_id AND i.user_id = m.user_id AND i.platform = c.platform
                             AND i.workspace = c.workspace
WHERE t.tenant_id = $1 AND t.id = $2

-- name: deliveries_of
-- What for: which parts of an answer stand on the platform already. $1 tenant, $2 turn.
SELECT part, external_id FROM deliveries WHERE tenant_id = $1 AND turn_id = $2 ORDER BY part

-- name: delivery_put
-- What for: a part stands there now. $1 tenant, $2 turn, $3 part, $4 its id on the platform, $5 now.
INSERT INTO deliveries (tenant_id, turn_id, part, external_id, sent_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant_id, turn_id, part) DO UPDATE SET external_id = excluded.external_id

-- name: delivered_by_us
-- What for: whether a message on the platform is an answer of ours, or a notice. $1 tenant, $2 its id there.
SELECT EXISTS (SELECT FROM deliveries WHERE tenant_id = $1 AND external_id = $2)
       OR EXISTS (SELECT FROM conversations WHERE tenant_id = $1 AND notice_id = $2)

-- name: messages_passed
-- What for: messages that were kept for an answer alone, and have it. $1 tenant, $2 how many.
SELECT m.id FROM messages AS m
WHERE m.tenant_id = $1 AND m.ephemeral
      AND NOT EXISTS (SELECT FROM turns AS t
                      WHERE t.tenant_id = $1 AND t.state <> 'sent' AND (t.message_id = m.id OR t.reply_id = m.id))
LIMIT $2
