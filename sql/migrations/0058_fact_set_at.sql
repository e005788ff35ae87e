-- When the author of a fact set it: sharing it in place of another value, or approving it, lets it hold from a later time on.
-- NULL: when it began to hold.
ALTER TABLE facts ADD COLUMN set_at timestamptz;
