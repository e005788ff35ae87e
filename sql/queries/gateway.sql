-- name: gateway_turn_put
-- Record what is put into a request, in place of what an earlier one of the same turn got. Of the user's records,
-- only the latest `kept` stay besides.
WITH older AS (
    DELETE FROM gateway_turns WHERE tenant_id = :tenant_id AND user_id = :user_id AND (vendor, digest) IN (
        SELECT vendor, digest FROM gateway_turns
        WHERE tenant_id = :tenant_id AND user_id = :user_id AND (vendor, digest) <> (:vendor, :digest)
        ORDER BY created_at DESC, digest OFFSET :kept
    )
)
INSERT INTO gateway_turns (tenant_id, user_id, vendor, digest, standing, recalled, created_at)
SELECT :tenant_id, u.id, :vendor, :digest, :standing::uuid[], :recalled::uuid[], :now FROM users AS u
WHERE u.tenant_id = :tenant_id AND u.id = :user_id
ON CONFLICT (tenant_id, user_id, vendor, digest) DO UPDATE
SET standing = excluded.standing, recalled = excluded.recalled, created_at = excluded.created_at

-- name: gateway_turn_get
-- Get what was put into the request of a turn since a time, and when.
SELECT standing, recalled, created_at FROM gateway_turns
WHERE tenant_id = :tenant_id AND user_id = :user_id AND vendor = :vendor AND digest = :digest AND created_at > :since

-- name: gateway_log
-- List what the gateway did lately for a person's tools, newest first: requests that it put memory into, by ids, and messages
-- that it learns from (`is_said`), with when it did; NULL: they wait.
SELECT vendor, created_at AS at, standing, recalled, false AS is_said, NULL::timestamptz AS learnt_at
FROM gateway_turns WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
UNION ALL
SELECT vendor, said_at, '{}', '{}', true, learnt_at
FROM gateway_exchanges WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
ORDER BY at DESC, is_said
LIMIT :limit

-- name: gateway_exchange_put
-- Store an exchange to learn from, once; not of who has opted out. Where its user has forgotten something since they asked, it
-- is stored without its text, as one that was learnt from.
INSERT INTO gateway_exchanges (tenant_id, id, user_id, vendor, question, said_at, learnt_at)
SELECT :tenant_id, :id, u.id, :vendor, CASE WHEN u.forgot_at >= :asked_at THEN '' ELSE :question END, :now,
       CASE WHEN u.forgot_at >= :asked_at THEN :now::timestamptz END
FROM users AS u
WHERE u.tenant_id = :tenant_id AND u.id = :user_id AND NOT u.opted_out
ON CONFLICT (tenant_id, id) DO NOTHING
RETURNING learnt_at IS NULL

-- name: gateway_exchanges_due
-- List whose exchanges, by tool, are to be learnt from, in turns by user, longest waiting first: enough of them wait, none
-- came for a while, or the oldest has waited for long; not parked, not waiting after a failure, not claimed.
SELECT e.user_id, e.vendor
FROM gateway_exchanges AS e
LEFT JOIN learning_batches AS b ON b.tenant_id = :tenant_id AND b.scope = 'gateway ' || e.user_id || ' ' || e.vendor
WHERE e.tenant_id = :tenant_id AND e.learnt_at IS NULL AND b.parked_at IS NULL AND (b.due_at IS NULL OR b.due_at <= :now)
      AND (b.claimed_until IS NULL OR b.claimed_until <= :now)
GROUP BY e.user_id, e.vendor
HAVING count(*) >= :batch_size OR max(e.said_at) <= :quiet_since OR min(e.said_at) <= :waiting_since
ORDER BY row_number() OVER (PARTITION BY e.user_id ORDER BY min(e.said_at)), min(e.said_at), e.user_id, e.vendor
LIMIT :limit

-- name: gateway_exchanges_oldest
-- Get the oldest exchanges of a user and a tool that wait.
SELECT id, question, said_at FROM gateway_exchanges
WHERE tenant_id = :tenant_id AND user_id = :user_id AND vendor = :vendor AND learnt_at IS NULL
ORDER BY said_at, id LIMIT :limit

-- name: gateway_exchanges_lock_waiting
-- Lock those of these exchanges that still wait, until the transaction ends.
SELECT id FROM gateway_exchanges WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND learnt_at IS NULL FOR UPDATE

-- name: gateway_exchanges_end
-- End exchanges that were read: the texts are emptied. Learn nothing from those of these users that wait, also not in an
-- attempt that goes on, and note that they forgot something now: what they have asked until now, and is not answered yet,
-- teaches nothing.
WITH attempts AS (
    DELETE FROM learning_batches WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
), noted AS (
    UPDATE users SET forgot_at = greatest(forgot_at, :now) WHERE tenant_id = :tenant_id AND id = ANY (:user_ids::uuid[])
)
UPDATE gateway_exchanges SET learnt_at = :now, question = ''
WHERE tenant_id = :tenant_id AND (id = ANY (:ids::uuid[]) OR user_id = ANY (:user_ids::uuid[]) AND learnt_at IS NULL)
