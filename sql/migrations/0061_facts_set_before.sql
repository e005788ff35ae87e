-- A fact that was approved before 0058 was set when it was sent to be approved: erasing a span of time, and taking back what
-- somebody wrote since a time, go by that.
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE facts AS f SET set_at = q.at FROM quarantine AS q
        WHERE f.tenant_id = each AND f.set_at IS NULL
              AND q.tenant_id = each AND q.kind = 'fact' AND q.item_id = f.id AND q.at < f.valid_from;
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
