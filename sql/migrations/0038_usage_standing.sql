-- How often a person was taken out of the ledger of model calls. A call that began before that must not name them again when
-- it ends.
ALTER TABLE users ADD COLUMN usage_erasures bigint NOT NULL DEFAULT 0;
