-- name: tenant_share
-- Begin a transaction that writes, beside others that do: what is alone ends before, or waits until this one ends.
SELECT pg_advisory_xact_lock_shared(hashtextextended('tenant:' || (:tenant_id::uuid)::text, 0))

-- name: tenant_alone
-- Begin a transaction beside which nothing else of the tenant is written.
SELECT pg_advisory_xact_lock(hashtextextended('tenant:' || (:tenant_id::uuid)::text, 0))

-- name: tenant_serialize
-- Let one transaction of a tenant at a time add up or compare what others change (see Transaction.serialize).
SELECT FROM tenants WHERE tenant_id = :tenant_id FOR NO KEY UPDATE
