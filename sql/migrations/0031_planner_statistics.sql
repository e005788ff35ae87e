-- The planner's statistics of the table that has grown most since they were taken, taken anew. Plans are kept (see
-- composer/stores/postgres.py), so they must not be those of a table that was much smaller: autovacuum takes statistics
-- too, but up to a minute later, and a plan that was made meanwhile can take a hundred times as long. Only a table's
-- owner may analyse it, so this is a function of the owner. Returns the table's name, or NULL when none has grown;
-- `passed` are tables to leave out, because another session analyses them.
CREATE FUNCTION analyze_grown_table(passed text[]) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    grown text;
BEGIN
    SELECT relname INTO grown FROM (
        SELECT relname, reltuples, relpages, pg_relation_size(oid) / current_setting('block_size')::int AS pages
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> ALL (passed)
    ) AS tables
    WHERE pages > CASE WHEN reltuples > 0 THEN 2 * relpages + 4 ELSE 0 END
    ORDER BY pages DESC, relname LIMIT 1;
    IF grown IS NOT NULL THEN
        EXECUTE format('ANALYZE (SKIP_LOCKED) %I', grown);
    END IF;
    RETURN grown;
END
$$;
REVOKE ALL ON FUNCTION analyze_grown_table(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION analyze_grown_table(text[]) TO nexus_service;
