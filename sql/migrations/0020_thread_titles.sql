-- The title of a thread is often what somebody wrote. It is not stored any more.
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE conversations SET title = NULL WHERE tenant_id = each AND kind = 'thread' AND title IS NOT NULL;
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
