-- name: audit_record
-- Add signed rows to the audit log; they wait for their seal. `events` is a JSON array of them.
WITH new AS (
    SELECT * FROM jsonb_to_recordset(:events::jsonb) AS new (id uuid, at timestamptz, act text, actor_id uuid,
        user_ids uuid[], conversation_id uuid, project_id uuid, details jsonb, key_id text, signature text)
), waiting AS (
    INSERT INTO audit_unsealed (tenant_id, id) SELECT :tenant_id, id FROM new
)
INSERT INTO audit_events (tenant_id, id, at, act, actor_id, user_ids, conversation_id, project_id, details, key_id,
    signature)
SELECT :tenant_id, id, at, act, actor_id, user_ids, conversation_id, project_id, details, key_id,
       decode(signature, 'hex')
FROM new

-- name: audit_last_seal
-- Get the end of the chain: the last seal. With `before`, the last one that has, like all seals before it, a row from
-- before that time.
SELECT number, event_id, sealed_at, event_digest, before, key_id, signature FROM audit_seals
WHERE tenant_id = :tenant_id
      AND (:before::timestamptz IS NULL
           OR number < coalesce((SELECT min(k.number) FROM audit_seals AS k
                                 JOIN audit_events AS e ON e.tenant_id = k.tenant_id AND e.id = k.event_id
                                 WHERE k.tenant_id = :tenant_id AND e.at >= :before), 9223372036854775807))
ORDER BY number DESC LIMIT 1

-- name: audit_anchor
-- Get where retention cut the log.
SELECT number, digest, cut_at, key_id, signature FROM audit_anchors WHERE tenant_id = :tenant_id

-- name: audit_waiting
-- List rows that wait for their seal, oldest first.
SELECT e.id, e.at, e.act, e.actor_id, e.user_ids, e.conversation_id, e.project_id, e.details, e.key_id, e.signature
FROM audit_unsealed AS u JOIN audit_events AS e ON e.tenant_id = :tenant_id AND e.id = u.id
WHERE u.tenant_id = :tenant_id
ORDER BY e.at, e.id LIMIT :limit

-- name: audit_waiting_count
-- Count the rows that wait for their seal, and get the time of the oldest.
SELECT count(*) AS rows, min(e.at) AS oldest
FROM audit_unsealed AS u JOIN audit_events AS e ON e.tenant_id = :tenant_id AND e.id = u.id
WHERE u.tenant_id = :tenant_id

-- name: audit_unsealed
-- To verify the log, list rows without a seal, oldest first. This compares all rows with all seals.
SELECT e.id, e.at, e.act, e.actor_id, e.user_ids, e.conversation_id, e.project_id, e.details, e.key_id, e.signature
FROM audit_events AS e
WHERE e.tenant_id = :tenant_id
      AND NOT EXISTS (SELECT FROM audit_seals AS s WHERE s.tenant_id = :tenant_id AND s.event_id = e.id)
ORDER BY e.at, e.id LIMIT :limit

-- name: audit_seal
-- Seal rows. They no longer wait for it.
WITH sealed AS (
    DELETE FROM audit_unsealed WHERE tenant_id = :tenant_id AND id = ANY (:event_ids::uuid[])
)
INSERT INTO audit_seals (tenant_id, number, event_id, sealed_at, event_digest, before, key_id, signature)
SELECT :tenant_id, number, event_id, :sealed_at, event_digest, before, :key_id, signature
FROM unnest(:numbers::bigint[], :event_ids::uuid[], :event_digests::bytea[], :before::bytea[], :signatures::bytea[])
     AS new (number, event_id, event_digest, before, signature)

-- name: audit_sealed
-- List seals in their order, each with its row if that is still there.
SELECT s.number, s.event_id, s.sealed_at, s.event_digest, s.before, s.key_id AS seal_key_id,
       s.signature AS seal_signature,
       e.id, e.at, e.act, e.actor_id, e.user_ids, e.conversation_id, e.project_id, e.details, e.key_id, e.signature
FROM audit_seals AS s LEFT JOIN audit_events AS e ON e.tenant_id = s.tenant_id AND e.id = s.event_id
WHERE s.tenant_id = :tenant_id AND s.number > :after
ORDER BY s.number LIMIT :limit

-- name: audit_cut
-- Delete the rows up to a seal, and leave an anchor; returns how many went.
SELECT audit_cut(:number, :digest, :cut_at, :key_id, :signature)

-- name: audit_find
-- List rows, newest first; with `before` and `before_id` those that come after that row in this order.
SELECT e.id, e.at, e.act, e.actor_id, e.user_ids, e.conversation_id, e.project_id, e.details, e.key_id, e.signature
FROM audit_events AS e
WHERE e.tenant_id = :tenant_id AND e.at >= coalesce(:since::timestamptz, '-infinity')
      AND e.at < coalesce(:until::timestamptz, 'infinity') AND (:act::text IS NULL OR e.act = :act)
      AND (:user_id::uuid IS NULL OR e.actor_id = :user_id OR :user_id = ANY (e.user_ids))
      AND (:before::timestamptz IS NULL OR (e.at, e.id) < (:before, :before_id::uuid))
ORDER BY e.at DESC, e.id DESC LIMIT :limit

-- name: audit_rooms
-- Say of some conversations what they are, each by its room: the name, and whether that is private and one of those that the
-- viewer is in now (`joined_ids`).
SELECT c.id, coalesce(room.kind, c.kind) AS kind, coalesce(room.title, room.name) AS name, room.private,
       room.id = ANY (:joined_ids::uuid[]) AS joined
FROM conversations AS c LEFT JOIN conversations AS room ON room.tenant_id = :tenant_id AND room.id = coalesce(c.room_id, c.id)
WHERE c.tenant_id = :tenant_id AND c.id = ANY (:conversation_ids::uuid[])

-- name: audit_counts
-- Count rows by act, since a time.
SELECT e.act, count(*) AS rows, count(DISTINCT e.actor_id) AS actors FROM audit_events AS e
WHERE e.tenant_id = :tenant_id AND e.at >= :since GROUP BY e.act ORDER BY e.act
