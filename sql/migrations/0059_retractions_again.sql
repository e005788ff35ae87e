-- What a platform refuses to retract is tried again until it was refused for too long, and `nexus doctor` names it.
-- part: of a part of an answer that may be posted though its id is not recorded (external_id is '' then): it is looked for by its key.
-- since: the time before which that can't be posted.
ALTER TABLE retractions
    ADD COLUMN part integer,
    ADD COLUMN since timestamptz,
    ADD COLUMN refused_since timestamptz,
    ADD COLUMN retry_at timestamptz NOT NULL DEFAULT '-infinity';
GRANT UPDATE (refused_since, retry_at) ON retractions TO nexus_service;

ALTER TABLE posted_files
    ADD COLUMN refused_since timestamptz,
    ADD COLUMN retry_at timestamptz NOT NULL DEFAULT '-infinity';
