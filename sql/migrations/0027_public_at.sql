-- The latest time at which a room is known to have been public: what was written in private before it is not read by who
-- came while it was open, also when it arrives after the room was closed again.
ALTER TABLE conversations ADD COLUMN public_at timestamptz;
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE conversations SET public_at = CASE WHEN private THEN opened_at ELSE privacy_at END
        WHERE tenant_id = each AND kind = 'room';
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
