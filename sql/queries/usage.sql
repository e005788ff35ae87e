-- name: usage_erasure_count
-- Count how often the people of a call, who asks and whose DM or session it is in, were erased from the ledger, together;
-- NULL when one of them has opted out or has no name left (`blank`), or is unknown. It sets its tenant itself, as
-- api_key_find does.
SELECT CASE WHEN (:user_id::uuid IS NULL OR coalesce(bool_or(person.id = :user_id), false))
                 AND NOT coalesce(bool_or(person.opted_out OR person.name = :blank), false)
            THEN coalesce(sum(person.usage_erasures), 0)::bigint END AS erasures
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT u.id, u.name, u.opted_out, u.usage_erasures FROM users AS u
    WHERE u.tenant_id = within.tenant::uuid
          AND u.id = ANY (ARRAY[:user_id::uuid, (SELECT c.user_id FROM conversations AS c
                                                 WHERE c.tenant_id = within.tenant::uuid AND c.id = :conversation_id)])
    OFFSET 0
) AS person

-- name: usage_note_erasure
-- Let no call that has begun name these people when it ends.
UPDATE users AS u SET usage_erasures = u.usage_erasures + 1
FROM (SELECT id FROM users WHERE tenant_id = :tenant_id AND id = ANY (:user_ids::uuid[]) ORDER BY id FOR NO KEY UPDATE) AS own
WHERE u.tenant_id = :tenant_id AND u.id = own.id

-- name: usage_add
-- Add one call to the ledger. Its people are named if none of them was erased from the ledger since it began (`begun`, as
-- usage_erasure_count returns it; NULL: they are not named), and nobody opts them out or erases them until that is stored.
-- If they are not named, neither is their DM or session. It sets its tenant itself, as api_key_find does.
WITH within AS MATERIALIZED (
    SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true)::uuid AS tenant
), people AS MATERIALIZED (
    SELECT person.* FROM within CROSS JOIN LATERAL (
        SELECT u.id, u.name, u.opted_out, u.usage_erasures FROM users AS u
        WHERE u.tenant_id = within.tenant
              AND u.id = ANY (ARRAY[:user_id::uuid, (SELECT c.user_id FROM conversations AS c
                                                     WHERE c.tenant_id = within.tenant AND c.id = :conversation_id)])
        ORDER BY u.id FOR SHARE
    ) AS person
), naming AS MATERIALIZED (
    SELECT (:user_id::uuid IS NULL OR coalesce(bool_or(id = :user_id), false))
           AND NOT coalesce(bool_or(opted_out OR name = :blank), false)
           AND coalesce(coalesce(sum(usage_erasures), 0) = :begun::bigint, false) AS named
    FROM people
)
INSERT INTO model_usage AS u (tenant_id, day, kind, agent_id, conversation_id, user_id, model, calls, failures, refused,
    estimated, prompt_tokens, completion_tokens, cached_tokens, unpriced_tokens, cost)
SELECT within.tenant, :day, :kind, :agent_id,
       CASE WHEN named OR NOT EXISTS (SELECT FROM conversations AS c WHERE c.tenant_id = within.tenant
                                      AND c.id = :conversation_id AND c.user_id IS NOT NULL)
           THEN :conversation_id ELSE :nobody END,
       CASE WHEN named THEN coalesce(:user_id, :nobody) ELSE :nobody END,
       :model, :calls, :failures, :refused, :estimated,
       :prompt_tokens, :completion_tokens, :cached_tokens, :unpriced_tokens, :cost
FROM within CROSS JOIN naming
ON CONFLICT (tenant_id, day, kind, agent_id, conversation_id, user_id, model) DO UPDATE
SET calls = u.calls + excluded.calls, failures = u.failures + excluded.failures, refused = u.refused + excluded.refused,
    estimated = u.estimated + excluded.estimated, prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = u.completion_tokens + excluded.completion_tokens,
    cached_tokens = u.cached_tokens + excluded.cached_tokens,
    unpriced_tokens = u.unpriced_tokens + excluded.unpriced_tokens, cost = u.cost + excluded.cost

-- name: usage_spent
-- Add up a month until a day, that day apart, by kind of work and agent, for budgets; with a time (`running_at`), also what
-- calls that run then may use.
SELECT u.day = :today AS today, u.kind, coalesce(a.slug, '') AS agent,
       sum(u.prompt_tokens + u.completion_tokens)::bigint AS tokens, sum(u.cost) AS cost, sum(u.refused)::bigint AS refused
FROM model_usage AS u LEFT JOIN agents AS a ON a.tenant_id = :tenant_id AND a.id = u.agent_id
WHERE u.tenant_id = :tenant_id AND u.day BETWEEN :since AND :today
GROUP BY 1, 2, 3
UNION ALL
SELECT true, kind, agent, sum(tokens)::bigint, sum(cost), 0 FROM usage_reservations
WHERE tenant_id = :tenant_id AND expires_at > :running_at::timestamptz
GROUP BY 2, 3

-- name: usage_reserve
-- Count what a call may use as used until it is released. The reservations of calls that nobody ended are deleted.
WITH expired AS (
    DELETE FROM usage_reservations WHERE tenant_id = :tenant_id AND expires_at <= :now
)
INSERT INTO usage_reservations (tenant_id, id, kind, agent, tokens, cost, expires_at)
VALUES (:tenant_id, :id, :kind, :agent, :tokens, :cost, :expires_at)

-- name: usage_release
-- End the reservation of a call.
DELETE FROM usage_reservations WHERE tenant_id = :tenant_id AND id = :id

-- name: usage_report
-- Add up some days by day, agent, room, person, kind, model, or month and kind: of everyone, or of some users. Each room comes with
-- whether it is one of those that the viewer is in now (`joined_ids`), so that the name of a private one is shown to nobody else.
SELECT CASE :by::text WHEN 'day' THEN u.day::text WHEN 'month' THEN date_trunc('month', u.day)::date::text WHEN 'agent' THEN coalesce(a.slug, '') WHEN 'room' THEN coalesce(room.id::text, '')
           WHEN 'person' THEN u.user_id::text WHEN 'kind' THEN u.kind ELSE u.model END AS key,
       CASE :by::text WHEN 'room' THEN coalesce(room.title, room.name) WHEN 'person' THEN p.name WHEN 'month' THEN u.kind END AS name,
       CASE WHEN :by::text = 'room' THEN room.kind END AS place,
       CASE WHEN :by::text = 'room' THEN room.private END AS private,
       CASE WHEN :by::text = 'room' THEN room.id = ANY (:joined_ids::uuid[]) END AS joined,
       sum(u.calls)::bigint AS calls, sum(u.failures)::bigint AS failures, sum(u.refused)::bigint AS refused,
       sum(u.estimated)::bigint AS estimated, sum(u.prompt_tokens)::bigint AS prompt_tokens,
       sum(u.completion_tokens)::bigint AS completion_tokens, sum(u.cached_tokens)::bigint AS cached_tokens,
       sum(u.unpriced_tokens)::bigint AS unpriced_tokens, sum(u.cost) AS cost
FROM model_usage AS u
LEFT JOIN agents AS a ON a.tenant_id = :tenant_id AND a.id = u.agent_id
LEFT JOIN users AS p ON p.tenant_id = :tenant_id AND p.id = u.user_id
LEFT JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = u.conversation_id
LEFT JOIN conversations AS room ON room.tenant_id = :tenant_id AND room.id = coalesce(c.room_id, c.id)
WHERE u.tenant_id = :tenant_id AND u.day BETWEEN :since AND :until
      AND (:user_ids::uuid[] IS NULL OR u.user_id = ANY (:user_ids::uuid[]))
GROUP BY 1, 2, 3, 4, 5
ORDER BY 1

-- name: usage_blank
-- Take people out of the ledger, on some days or on all, and with them the DMs and sessions that their rows name; the
-- figures remain.
WITH own AS (
    DELETE FROM model_usage AS u
    WHERE u.tenant_id = :tenant_id
          AND u.user_id = ANY (:user_ids::uuid[])
          AND (:since::date IS NULL OR u.day >= :since) AND (:until::date IS NULL OR u.day <= :until)
    RETURNING u.*
)
INSERT INTO model_usage AS u (tenant_id, day, kind, agent_id, conversation_id, user_id, model, calls, failures, refused,
    estimated, prompt_tokens, completion_tokens, cached_tokens, unpriced_tokens, cost)
SELECT :tenant_id, o.day, o.kind, o.agent_id,
       CASE WHEN EXISTS (SELECT FROM conversations AS c WHERE c.tenant_id = :tenant_id AND c.id = o.conversation_id
                         AND c.user_id IS NOT NULL)
           THEN '00000000-0000-0000-0000-000000000000'::uuid ELSE o.conversation_id END,
       '00000000-0000-0000-0000-000000000000', o.model, sum(o.calls), sum(o.failures), sum(o.refused), sum(o.estimated),
       sum(o.prompt_tokens), sum(o.completion_tokens), sum(o.cached_tokens), sum(o.unpriced_tokens), sum(o.cost)
FROM own AS o
GROUP BY 2, 3, 4, 5, 7
ON CONFLICT (tenant_id, day, kind, agent_id, conversation_id, user_id, model) DO UPDATE
SET calls = u.calls + excluded.calls, failures = u.failures + excluded.failures, refused = u.refused + excluded.refused,
    estimated = u.estimated + excluded.estimated, prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = u.completion_tokens + excluded.completion_tokens,
    cached_tokens = u.cached_tokens + excluded.cached_tokens,
    unpriced_tokens = u.unpriced_tokens + excluded.unpriced_tokens, cost = u.cost + excluded.cost

-- name: figures_cut
-- Delete the figures of calls of the days before one, the totals of operations of the months before its, and the notices of
-- quotas of the months before `month`; returns how many figures went.
WITH notices AS (
    DELETE FROM quota_notices WHERE tenant_id = :tenant_id AND month < :month
), days AS (
    DELETE FROM model_usage WHERE tenant_id = :tenant_id AND day < :before RETURNING 1
), months AS (
    DELETE FROM operation_totals WHERE tenant_id = :tenant_id AND month < date_trunc('month', :before::date) RETURNING 1
)
SELECT (SELECT count(*) FROM days) + (SELECT count(*) FROM months)
