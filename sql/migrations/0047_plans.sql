-- A person's own settings over the API. They are those of all users that the person is: the row that was changed last counts.
-- recall: whether tools, and questions over the API, are given anything. strategy NULL: that of the tenant. budget: tokens.
-- trash_days: how long what they threw away can be restored. keep_days: how long after their last change entries that tools
-- wrote for the person alone are kept; NULL: until somebody erases them.
CREATE TABLE personal_settings (
    tenant_id uuid NOT NULL,
    user_id uuid NOT NULL,
    recall boolean NOT NULL,
    strategy text CHECK (strategy IN ('hybrid', 'semantic', 'recent')),
    budget int NOT NULL CHECK (budget BETWEEN 0 AND 16000),
    trash_days int NOT NULL CHECK (trash_days BETWEEN 1 AND 365),
    keep_days int CHECK (keep_days BETWEEN 1 AND 365),
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

-- What was done over the API, added up by month in the tenant's time zone. vendor: the tool, or api for the person. tokens: an
-- estimate of what was stored or handed out; those of models are in model_usage.
-- As there, the id 00000000-… stands for nobody, and rows outlive whom they name.
CREATE TABLE operation_totals (
    tenant_id uuid NOT NULL,
    month date NOT NULL,
    user_id uuid NOT NULL,
    vendor text NOT NULL,
    operation text NOT NULL,
    count bigint NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant_id, month, user_id, vendor, operation)
);
CREATE INDEX operation_totals_by_user ON operation_totals (tenant_id, user_id, month);

-- That a tenant has used most of a quota of its plan in a month: for each of its admins, told once (told_at).
CREATE TABLE quota_notices (
    tenant_id uuid NOT NULL,
    month date NOT NULL,
    quota text NOT NULL,
    user_id uuid NOT NULL,
    used bigint NOT NULL,
    most bigint NOT NULL,
    told_at timestamptz,
    PRIMARY KEY (tenant_id, month, quota, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX quota_notices_untold ON quota_notices (tenant_id, month) WHERE told_at IS NULL;

-- For counting a tenant's entries without reading them.
CREATE INDEX memories_entries ON memories (tenant_id)
    WHERE trashed_at IS NULL AND superseded_by IS NULL AND merged_into IS NULL AND origin <> 'extracted'
          AND (starts_with(namespace, 'entries:') OR starts_with(namespace, 'team:') OR starts_with(namespace, 'project:'));

ALTER TABLE personal_settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE personal_settings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON personal_settings USING (tenant_id = current_tenant());
ALTER TABLE operation_totals ENABLE ROW LEVEL SECURITY;
ALTER TABLE operation_totals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON operation_totals USING (tenant_id = current_tenant());
ALTER TABLE quota_notices ENABLE ROW LEVEL SECURITY;
ALTER TABLE quota_notices FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON quota_notices USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON personal_settings, operation_totals, quota_notices TO nexus_service;
