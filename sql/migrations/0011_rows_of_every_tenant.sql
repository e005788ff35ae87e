-- What 0004 and 0010 change in rows, tenant by tenant: where row-level security binds the migrating user too, they saw none.
-- Nothing is changed where they saw all.
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE landmarks SET state = 'retired' WHERE tenant_id = each AND retired_at IS NOT NULL AND state <> 'retired';
        UPDATE conversations SET notice_id = ''
        WHERE tenant_id = each AND noticed_at IS NOT NULL AND notice_for IS NULL AND notice_id IS NULL;
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
