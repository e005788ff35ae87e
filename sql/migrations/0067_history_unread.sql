-- Since when what is stored of a platform's workspace does not say how far its history was read, until that is read: a
-- process that ends in between leaves it to the next one.
ALTER TABLE workspaces ADD COLUMN history_unread_since timestamptz;
GRANT UPDATE (history_unread_since) ON workspaces TO nexus_service;
