-- name: sharing_isolated_project
-- Find the isolated project that a namespace lies in: its own, or that of its conversation.
SELECT p.id FROM projects AS p
WHERE p.tenant_id = :tenant_id AND p.isolated
      AND (:namespace = 'project:' || p.id::text
           OR EXISTS (SELECT FROM conversations AS c WHERE c.tenant_id = :tenant_id AND c.project_id = p.id
                      AND (c.namespace = :namespace OR starts_with(:namespace, 'room:' || c.id::text))))

-- name: sharing_move
-- File a memory, with everything merged into it, or a landmark under another tag, also in the recall index. Its lineage and
-- what it superseded stay as they are.
WITH landmark AS (
    UPDATE landmarks SET namespace = :namespace, visibility = :visibility, user_id = :user_id
    WHERE tenant_id = :tenant_id AND id = :id AND state <> 'retired'
), moved AS (
    UPDATE memories SET namespace = :namespace, visibility = :visibility, user_id = :user_id
    WHERE tenant_id = :tenant_id AND (id = :id OR merged_into = :id) RETURNING id
), found AS (
    UPDATE recall_index AS r SET namespace = :namespace, visibility = :visibility, user_id = :user_id
    FROM moved WHERE r.tenant_id = :tenant_id AND r.id = moved.id
)
UPDATE recall_terms AS t SET namespace = :namespace, visibility = :visibility, user_id = :user_id
FROM moved WHERE t.tenant_id = :tenant_id AND t.item_id = moved.id

-- name: sharing_file_fact
-- File a current fact under another tag. It holds there since its beginning, but not before `since` (NULL: no limit); when it
-- was set stays.
UPDATE facts SET namespace = :namespace, visibility = :visibility, user_id = :user_id,
    valid_from = greatest(valid_from, :since::timestamptz), set_at = coalesce(set_at, valid_from)
WHERE tenant_id = :tenant_id AND id = :id AND valid_to IS NULL
