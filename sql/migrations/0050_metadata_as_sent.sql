-- The metadata of entries is kept as it was sent: jsonb writes 1e308 as a whole number of 309 digits, -0.0 as 0.0, and names
-- in another order.
ALTER TABLE memories ALTER COLUMN metadata DROP DEFAULT;
ALTER TABLE memories ALTER COLUMN metadata TYPE json USING metadata::json;
ALTER TABLE memories ALTER COLUMN metadata SET DEFAULT '{}';
ALTER TABLE quarantine ALTER COLUMN entry TYPE json USING entry::json;
