-- When the history of a platform's conversation was changed at once, as by an import of an admin, until what is stored of it was
-- compared with that: a process that ends in between leaves it to the next one.
ALTER TABLE conversations ADD COLUMN history_changed_at timestamptz;
