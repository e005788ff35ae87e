-- When a platform gave a room the id that is the last of its later_ids: what is told again after a later change is ignored.
ALTER TABLE conversations ADD COLUMN id_changed_at timestamptz;
