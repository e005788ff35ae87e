-- A person who reads for themselves, rather than through a tool, is restricted by no list of vendors: their vendor is '*'.
CREATE OR REPLACE FUNCTION may_read(
    namespace text, visibility text, user_id uuid, vendors text[],
    pooled text[], visibilities text[], readers uuid[], vendor text, rooms text[] DEFAULT '{}'
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    coalesce(namespace IS NOT NULL AND visibility IS NOT NULL AND pooled IS NOT NULL AND visibilities IS NOT NULL
             AND readers IS NOT NULL AND vendor IS NOT NULL AND rooms IS NOT NULL
             AND (vendors IS NULL OR vendor = '*' OR vendors && ARRAY['*', vendor])
             AND (visibility = ANY (visibilities)
                  OR (visibility = 'private' AND user_id = ANY (readers) AND namespace <> ALL (rooms))
                  OR namespace = ANY (pooled)
                  OR (visibility IN ('public', 'shared') AND namespace = ANY (rooms))), false); -- the lists last: they cost most

-- For the teams that a person's entries are shared with, which each of their DMs asks for.
CREATE INDEX memories_shared_with_teams ON memories (tenant_id, user_id, namespace) WHERE starts_with(namespace, 'team:');
