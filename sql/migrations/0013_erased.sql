-- What was erased, not messages alone: an answer that is being written is held against it, and a summary or a landmark that
-- is not there any more may as well have been written anew.
ALTER TABLE erased_messages RENAME TO erased;
ALTER INDEX erased_messages_pkey RENAME TO erased_pkey;
ALTER TABLE erased RENAME CONSTRAINT erased_messages_tenant_id_fkey TO erased_tenant_id_fkey;
