-- Names of projects need not be unique: that a name is taken would tell that a project exists.
ALTER TABLE projects DROP CONSTRAINT projects_tenant_id_slug_key;
CREATE INDEX projects_by_slug ON projects (tenant_id, slug);
