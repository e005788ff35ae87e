-- When a platform says that a message was edited, of the latest edit that is known: an older one that is delivered later, or
-- again, changes nothing, in whichever process.
ALTER TABLE messages ADD COLUMN edit_stated_at timestamptz;
