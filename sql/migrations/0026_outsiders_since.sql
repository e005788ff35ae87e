-- When it was last stated whether people of other organisations read a room too. Platforms deliver late and repeat: what was
-- stated of an earlier time changes nothing any more.
ALTER TABLE conversations ADD COLUMN outsiders_at timestamptz;
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE conversations SET outsiders_at = now() WHERE tenant_id = each AND outsiders;
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
