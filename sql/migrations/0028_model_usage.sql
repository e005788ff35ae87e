-- The ledger of model calls, added up by day in the tenant's time zone. It replaces usage_days, which a job added up from
-- turns and which knew neither extraction nor summaries.
-- The id 00000000-… stands for none: for the installation itself as a tenant (probes by nexus doctor), for no conversation,
-- and for nobody. So the tenant is no reference. Rows outlive the agents and conversations that they name.
CREATE TABLE model_usage (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    kind text NOT NULL,
    agent_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    user_id uuid NOT NULL,
    model text NOT NULL,
    calls bigint NOT NULL,
    failures bigint NOT NULL,
    refused bigint NOT NULL,            -- by a budget: never sent to the model
    estimated bigint NOT NULL,          -- calls whose tokens we counted, since the API reported none
    prompt_tokens bigint NOT NULL,      -- the cached ones included
    completion_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    unpriced_tokens bigint NOT NULL,    -- of models without a price
    cost numeric NOT NULL,              -- by the prices of that time
    PRIMARY KEY (tenant_id, day, kind, agent_id, conversation_id, user_id, model)
);
CREATE INDEX model_usage_by_user ON model_usage (tenant_id, user_id, day);

ALTER TABLE usage_days NO FORCE ROW LEVEL SECURITY;
INSERT INTO model_usage
SELECT tenant_id, day, 'answers', agent_id, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000',
       model, turns, failures, 0, 0, prompt_tokens, completion_tokens, cached_tokens, prompt_tokens + completion_tokens, 0
FROM usage_days WHERE model NOT IN ('', 'offline');
DROP TABLE usage_days;

ALTER TABLE model_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_usage FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON model_usage USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON model_usage TO nexus_service;
