-- A person may open the DMs of one of their accounts to the rooms that they are in (/nexus rooms on). Which rooms that is, is
-- looked up at each turn: nothing else is stored.
ALTER TABLE users ADD COLUMN reads_rooms boolean NOT NULL DEFAULT false;
CREATE INDEX members_by_user ON members (tenant_id, user_id) WHERE left_at IS NULL;

-- `rooms`: the namespaces of such rooms. Their rows are read as in the room itself: all but the private ones, also the
-- reader's own. A statement that does not name them reads none.
DROP FUNCTION may_read(text, text, uuid, text[], text[], text[], uuid[], text);
CREATE FUNCTION may_read(
    namespace text, visibility text, user_id uuid, vendors text[],
    pooled text[], visibilities text[], readers uuid[], vendor text, rooms text[] DEFAULT '{}'
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    coalesce(namespace IS NOT NULL AND visibility IS NOT NULL AND pooled IS NOT NULL AND visibilities IS NOT NULL
             AND readers IS NOT NULL AND vendor IS NOT NULL AND rooms IS NOT NULL
             AND (vendors IS NULL OR vendors && ARRAY['*', vendor])
             AND (visibility = ANY (visibilities)
                  OR (visibility = 'private' AND user_id = ANY (readers) AND namespace <> ALL (rooms))
                  OR namespace = ANY (pooled)
                  OR (visibility IN ('public', 'shared') AND namespace = ANY (rooms))), false); -- the lists last: they cost most
