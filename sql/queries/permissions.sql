-- name: actor_facts
-- Get every fact that composer.rights.table decides by, as of now: who the asker is in a conversation, in its project, and in
-- those of their projects that have one of these names, or that of its project. Slack and Discord name the admins of their rooms themselves, so
-- having opened a room counts for nothing there.
WITH conversation AS MATERIALIZED (
    SELECT coalesce(r.title, c.title, c.name) AS name, c.namespace, coalesce(r.private, c.private) AS private, c.pooled, c.room_id,
           c.platform, coalesce(r.project_id, c.project_id) AS project_id, coalesce(c.room_id, c.id) AS member_of
    FROM conversations AS c
    LEFT JOIN conversations AS r ON r.tenant_id = c.tenant_id AND r.id = c.room_id
    WHERE c.tenant_id = :tenant_id AND c.id = :conversation_id
), person AS MATERIALIZED (
    SELECT o.id FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    WHERE u.tenant_id = :tenant_id AND u.id = :asker_id
), roles AS MATERIALIZED (
    SELECT DISTINCT ON (pm.project_id) pm.project_id, pm.role FROM project_members AS pm
    WHERE pm.tenant_id = :tenant_id AND pm.user_id IN (SELECT id FROM person)
    ORDER BY pm.project_id, array_position(ARRAY['admin', 'write', 'read'], pm.role)
)
SELECT conversation.name, conversation.namespace, conversation.private, conversation.pooled, conversation.room_id, m.left_at IS NULL AND m.user_id IS NOT NULL AS joined,
       coalesce(m.admin AND m.left_at IS NULL AND conversation.platform NOT IN ('slack', 'discord'), false) AS opened_room,
       coalesce((SELECT u.admin FROM users AS u WHERE u.tenant_id = :tenant_id AND u.id = :asker_id),
           false) AS asker_admin,
       ARRAY(SELECT id FROM person WHERE id <> :asker_id ORDER BY id) AS linked_users,
       coalesce(
           (SELECT s.settings ->> 'timezone' FROM users AS s
            WHERE s.tenant_id = :tenant_id AND s.id = ANY (ARRAY(SELECT id FROM person)) AND s.settings IS NOT NULL
            ORDER BY s.settings_at DESC, s.id LIMIT 1),
           (SELECT i.timezone FROM identities AS i
            WHERE i.tenant_id = :tenant_id AND i.user_id = ANY (ARRAY(SELECT id FROM person)) AND i.timezone IS NOT NULL
            ORDER BY i.user_id <> :asker_id, i.platform, i.workspace LIMIT 1)) AS zone,
       p.id AS project_id, p.slug AS project_slug, p.isolated AS project_isolated,
       (SELECT role FROM roles WHERE project_id = p.id) AS project_role,
       (SELECT count(DISTINCT coalesce(u.person_id, u.id)) FROM project_members AS a
        JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = a.user_id
        WHERE a.tenant_id = :tenant_id AND a.project_id = p.id AND a.role = 'admin') AS project_admins,
       ARRAY(SELECT (o.id, o.slug, o.isolated, roles.role,
                     (SELECT count(DISTINCT coalesce(u.person_id, u.id)) FROM project_members AS a
                      JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = a.user_id
                      WHERE a.tenant_id = :tenant_id AND a.project_id = o.id AND a.role = 'admin')) FROM projects AS o JOIN roles ON roles.project_id = o.id
             WHERE o.tenant_id = :tenant_id AND (o.slug = ANY (:slugs::text[]) OR o.slug = p.slug)
             ORDER BY o.created_at, o.id) AS named_projects
FROM conversation
LEFT JOIN members AS m ON m.tenant_id = :tenant_id AND m.conversation_id = conversation.member_of AND m.user_id = :asker_id
LEFT JOIN projects AS p ON p.tenant_id = :tenant_id AND p.id = conversation.project_id

-- name: account_to_link
-- Get one account of a user, and whether linking it to another user would make one person of two accounts in one
-- workspace. That they use the API is no account: everybody is called by their own id there.
WITH person AS MATERIALIZED (
    SELECT i.platform, i.workspace FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    JOIN identities AS i ON i.tenant_id = o.tenant_id AND i.user_id = o.id AND i.platform <> 'rest'
    WHERE u.tenant_id = :tenant_id AND u.id = :user_id
), other AS MATERIALIZED (
    SELECT i.platform, i.workspace FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    JOIN identities AS i ON i.tenant_id = o.tenant_id AND i.user_id = o.id AND i.platform <> 'rest'
    WHERE u.tenant_id = :tenant_id AND u.id = :other_id
)
SELECT u.name, i.platform, i.workspace,
       EXISTS (SELECT FROM person JOIN other USING (platform, workspace)) AS same_place
FROM users AS u LEFT JOIN identities AS i ON i.tenant_id = u.tenant_id AND i.user_id = u.id AND i.platform <> 'rest'
WHERE u.tenant_id = :tenant_id AND u.id = :other_id
ORDER BY i.platform, i.workspace LIMIT 1
