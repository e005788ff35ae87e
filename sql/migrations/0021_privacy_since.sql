-- When a room's privacy was last stated, and when its present namespace was opened. Platforms deliver late and repeat: what
-- was stated earlier changes nothing any more.
ALTER TABLE conversations ADD COLUMN privacy_at timestamptz;
ALTER TABLE conversations ADD COLUMN opened_at timestamptz;
UPDATE conversations SET privacy_at = CASE WHEN private THEN now() ELSE coalesce(seen_at, created_at) END WHERE kind = 'room';
