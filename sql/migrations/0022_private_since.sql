-- The earliest statement that a private room is private, since it was last opened: a late statement that it was public at a
-- time after it shows that the room was open in between.
ALTER TABLE conversations ADD COLUMN private_since timestamptz;
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE conversations SET private_since = privacy_at WHERE tenant_id = each AND kind = 'room' AND private;
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
