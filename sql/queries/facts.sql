-- name: facts_readable
-- Get the readable facts that are valid at a time, all or of one key; with no time (NULL) every value that they have had, of
-- each key the oldest first.
SELECT id, namespace, visibility, user_id, key, value, author, valid_from, valid_to,
       CASE WHEN starts_with(namespace, 'profile:')
            THEN (SELECT u.name FROM users AS u WHERE u.tenant_id = :tenant_id AND u.id = substr(namespace,
                9)::uuid) END AS subject
FROM facts
WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)
      AND (:at::timestamptz IS NULL OR valid_from <= :at AND (valid_to IS NULL OR valid_to > :at))
      AND (:key::text IS NULL OR key = :key)
ORDER BY key, CASE WHEN :at IS NULL THEN valid_from END, namespace, id

-- name: fact_is_set
-- Find out whether a key has a current value in a scope.
SELECT id FROM facts
WHERE tenant_id = :tenant_id AND namespace = :namespace AND visibility = :visibility AND key = :key AND valid_to IS NULL
LIMIT 1

-- name: fact_close
-- End the current value of a key before the fact `id` takes its place, unless that is stored already (and not `moved`).
UPDATE facts SET valid_to = greatest(:now, valid_from + interval '1 microsecond')
WHERE tenant_id = :tenant_id AND namespace = :namespace AND visibility = :visibility AND key = :key AND valid_to IS NULL
      AND id <> :id AND (:moved::boolean OR NOT EXISTS (SELECT FROM facts AS known WHERE known.tenant_id = :tenant_id AND known.id = :id))
RETURNING id, value, valid_to

-- name: fact_insert
-- Store a value from a time on. Returns whether it is stored now, or was before; false where the key got another current value.
WITH stored AS (
INSERT INTO facts (tenant_id, id, namespace, user_id, agent_id, visibility, key, value, author, origin, valid_from,
    set_at, trust)
VALUES (:tenant_id, :id, :namespace, :user_id, :agent_id, :visibility, :key, :value, :author, :origin, :valid_from,
    :set_at, :trust)
ON CONFLICT DO NOTHING RETURNING id
)
SELECT EXISTS (SELECT FROM stored) OR EXISTS (SELECT FROM facts WHERE tenant_id = :tenant_id AND id = :id)
