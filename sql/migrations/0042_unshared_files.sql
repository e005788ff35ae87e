-- Until when a file may be recorded, and not yet be shared: that a platform does not find it then does not mean that it is
-- gone. NULL: it was shared.
ALTER TABLE posted_files ADD COLUMN sharing_until timestamptz;
