-- When all that an entry says was written: with its key, in place of what it said before. Forgetting late what was said until a
-- time goes by it. NULL: when the entry was made.
ALTER TABLE memories ADD COLUMN said_at timestamptz;
