-- When the platform archived a thread: what was said up to then is over, and is summarised without three quiet days.
ALTER TABLE conversations ADD COLUMN archived_at timestamptz;
