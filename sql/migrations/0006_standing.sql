-- How memories stand beside each other, and what waits to be extracted by a model.

-- Until when a memory held, where a newer one outdated it (`superseded_by`): recall leaves it out from then on, and
-- "what was so on that day" still finds it. `expires_at` is its own end; recall_index has the earlier of the two.
ALTER TABLE memories ADD COLUMN valid_to timestamptz;
CREATE INDEX memories_superseded ON memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;
-- What a statement is held against: the extracted ones of its very scope that stand.
CREATE INDEX memories_standing ON memories (tenant_id, run_id, visibility, user_id)
    WHERE origin = 'extracted' AND deleted_at IS NULL;

-- Messages that a model is to look at for memories. A message is put here in the transaction that indexes it and taken
-- out in the one that stores what was found: so none is extracted twice, and none never.
CREATE TABLE extraction_queue (
    tenant_id uuid NOT NULL,
    message_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    run_id text NOT NULL,
    visibility text NOT NULL,
    queued_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, message_id),
    FOREIGN KEY (tenant_id, message_id) REFERENCES messages ON DELETE CASCADE
);
CREATE INDEX extraction_queue_by_scope ON extraction_queue (tenant_id, conversation_id, run_id, visibility);

-- The attempts at a scope's queue. `claim` is the attempt that works on it, until `claimed_until`: a process that was
-- killed loses its claim by time. After too many failures it is parked (`parked_at`) for an admin to see.
-- Holds no word that anybody said; `error` is a sentence of ours.
CREATE TABLE extraction_batches (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    run_id text NOT NULL,
    visibility text NOT NULL,
    claim uuid,
    claimed_until timestamptz,
    attempts int NOT NULL DEFAULT 0,
    due_at timestamptz,
    parked_at timestamptz,
    error text,
    PRIMARY KEY (tenant_id, conversation_id, run_id, visibility),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['extraction_queue', 'extraction_batches']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_tenant())', name);
    END LOOP;
END
$$;
GRANT SELECT, INSERT, UPDATE, DELETE ON extraction_queue, extraction_batches TO nexus_service;
