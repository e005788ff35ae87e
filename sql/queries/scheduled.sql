-- name: posts_due
-- Say of which kinds something is to be posted where this process delivers (`served`, see turns_unowned): reminders and
-- digests that are due, refused reminders whose person is to be told, and quotas that admins are to be told of. With `position_id` and `position_user_id` (the terminal), as
-- reminder_take_due, reminder_take_refused, digest_take_due and quota_notice_take say.
SELECT EXISTS (SELECT FROM reminders AS r JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = r.conversation_id
               WHERE r.tenant_id = :tenant_id AND r.state = 'refused'
                     AND ARRAY[c.platform, c.platform || ':' || c.workspace] && :served::text[]
                     AND (:position_user_id::uuid IS NULL OR r.user_id = :position_user_id)) AS refusals,
       EXISTS (SELECT FROM reminders AS r JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = r.conversation_id
               WHERE r.tenant_id = :tenant_id AND r.state = 'open' AND r.due_at <= :now
                     AND ARRAY[c.platform, c.platform || ':' || c.workspace] && :served::text[]
                     AND (:position_id::uuid IS NULL OR c.id = :position_id
                          OR (c.kind = 'dm' AND c.user_id = :position_user_id))) AS reminders,
       EXISTS (SELECT FROM conversations AS c
               WHERE c.tenant_id = :tenant_id AND c.digest_due_at <= :now
                     AND ARRAY[c.platform, c.platform || ':' || c.workspace] && :served::text[]
                     AND (:position_id::uuid IS NULL OR c.id = :position_id)) AS digests,
       EXISTS (SELECT FROM quota_notices AS n JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = n.user_id
               JOIN identities AS i ON i.tenant_id = :tenant_id AND i.user_id = n.user_id
               WHERE n.tenant_id = :tenant_id AND n.told_at IS NULL AND u.admin AND NOT u.opted_out AND i.platform <> 'rest'
                     AND ARRAY[i.platform, i.platform || ':' || i.workspace] && :served::text[]
                     AND (:position_user_id::uuid IS NULL OR n.user_id = :position_user_id)) AS quotas
