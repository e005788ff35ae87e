-- When a platform said what a person is to the workspace: an older statement changes nothing, in whichever process.
ALTER TABLE identities ADD COLUMN trust_stated_at timestamptz;
GRANT UPDATE (trust_stated_at) ON identities TO nexus_service;
