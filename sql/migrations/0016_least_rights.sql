-- The service's role has the rights that its statements use, and no others (a test compares them with sql/queries), and
-- what is unknown can't be read.

REVOKE ALL ON ALL TABLES IN SCHEMA public FROM nexus_service;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO nexus_service;
GRANT INSERT ON audit_events, audit_seals, agents, deliveries, episodes, erased, identities, projects, recall_terms, tenants, users, workspaces,
    commands, compactions, conversations, deployment, extraction_batches, extraction_queue, facts, job_runs, landmarks, lineage,
    link_codes, members, memories, messages, project_members, recall_index, reembedded, retractions, settings, summaries,
    summaries_due, turns, usage_days TO nexus_service;
GRANT UPDATE ON commands, conversations, deliveries, deployment, extraction_batches, extraction_queue, facts, job_runs, landmarks,
    link_codes, members, memories, messages, project_members, recall_index, recall_terms, settings, summaries_due, turns,
    usage_days, users TO nexus_service;
GRANT DELETE ON commands, compactions, deployment, extraction_batches, extraction_queue, facts, job_runs, landmarks, lineage,
    link_codes, memories, messages, project_members, recall_index, reembedded, retractions, settings, summaries,
    summaries_due, turns TO nexus_service;

-- An unknown namespace, visibility, list or vendor is false, not unknown: `NULL OR true` would be true.
CREATE OR REPLACE FUNCTION may_read(
    namespace text, visibility text, user_id uuid, vendors text[],
    pooled text[], visibilities text[], readers uuid[], vendor text
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    coalesce(namespace IS NOT NULL AND visibility IS NOT NULL
             AND pooled IS NOT NULL AND visibilities IS NOT NULL AND readers IS NOT NULL AND vendor IS NOT NULL
             AND (vendors IS NULL OR vendors && ARRAY['*', vendor])
             AND (visibility = ANY (visibilities) OR (visibility = 'private' AND user_id = ANY (readers))
                  OR namespace = ANY (pooled)), false); -- the pool last, since it is the most expensive
