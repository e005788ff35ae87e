-- name: billing_customer_get
-- Get the customer that the tenant is at the billing provider.
SELECT customer, status, plan, until, ends, version FROM billing_customers WHERE tenant_id = :tenant_id

-- name: billing_customer_put
-- Store the customer that the tenant is from now on, in place of another one (`replaced`); one that was stored meanwhile stays.
INSERT INTO billing_customers AS b (tenant_id, customer) VALUES (:tenant_id, :customer)
ON CONFLICT (tenant_id) DO UPDATE SET customer = excluded.customer, version = b.version + 1 WHERE b.customer = :replaced

-- name: billing_customer_note
-- Store the state of a tenant's subscription, unless another one was stored since the version that is known: then no row is
-- returned.
UPDATE billing_customers SET status = :status, plan = :plan, until = :until, ends = :ends, version = version + 1
WHERE tenant_id = :tenant_id AND version = :version RETURNING version
