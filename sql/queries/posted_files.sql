-- name: posted_file_insert
-- Record a file that is put into a person's DM, before anybody can see it there. It is shared before `sharing_until`, or
-- never.
INSERT INTO posted_files (tenant_id, platform, workspace, external_id, user_id, sharing_until)
VALUES (:tenant_id, :platform, :workspace, :external_id, :user_id, :sharing_until)
ON CONFLICT DO NOTHING

-- name: posted_file_share
-- Note that a file was shared. Returns whether it is to be deleted.
UPDATE posted_files SET sharing_until = NULL
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND external_id = :external_id
RETURNING due

-- name: posted_files_withdraw
-- Have the files in the DMs of these users deleted.
UPDATE posted_files SET due = true WHERE tenant_id = :tenant_id AND user_id = ANY (:users::uuid[]) AND NOT due
RETURNING external_id

-- name: posted_files_due
-- List the files that are to be deleted in a workspace now, those first that were not tried yet, those last that may
-- not be shared yet.
SELECT external_id, coalesce(sharing_until > :now, false) AS sharing, refused_since FROM posted_files
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND due AND retry_at <= :now
ORDER BY sharing, retry_at, external_id LIMIT :limit

-- name: posted_file_postpone
-- Try to delete a file again later; `refused_since`: since when the platform refuses it.
UPDATE posted_files SET retry_at = :retry_at, refused_since = :refused_since
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND external_id = :external_id

-- name: posted_file_delete
-- A file is deleted on its platform, or never will be.
DELETE FROM posted_files
WHERE tenant_id = :tenant_id AND platform = :platform AND workspace = :workspace AND external_id = :external_id
