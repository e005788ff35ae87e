-- name: tool_reads_add
-- Record what was handed out to tools, each item once for a tool and a route, with the latest time: nothing that was erased since,
-- and nothing of who has opted out or was erased (`nameless`). Of a tool the latest `kept` stay.
WITH new AS MATERIALIZED (
    SELECT n.* FROM unnest(:item_ids::uuid[], :user_ids::uuid[], :vendors::text[], :routes::text[], :times::timestamptz[])
         AS n (item_id, user_id, vendor, route, at)
    JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = n.user_id
    WHERE NOT u.opted_out AND u.name <> :nameless
          AND NOT EXISTS (SELECT FROM erased AS e WHERE e.tenant_id = :tenant_id AND e.id = n.item_id)
), older AS (
    DELETE FROM tool_reads AS r USING (SELECT DISTINCT user_id, vendor FROM new) AS tool
    WHERE r.tenant_id = :tenant_id AND r.user_id = tool.user_id AND r.vendor = tool.vendor
          AND NOT r.item_id = ANY (:item_ids::uuid[])  -- those are written below
          AND r.at < (SELECT k.at FROM tool_reads AS k
                      WHERE k.tenant_id = :tenant_id AND k.user_id = tool.user_id AND k.vendor = tool.vendor
                      ORDER BY k.at DESC OFFSET :kept LIMIT 1)
)
INSERT INTO tool_reads (tenant_id, item_id, user_id, vendor, route, at)
SELECT :tenant_id, item_id, user_id, vendor, route, at FROM new ORDER BY 2, 3, 4, 5
ON CONFLICT (tenant_id, item_id, user_id, vendor, route) DO UPDATE SET at = greatest(tool_reads.at, excluded.at)

-- name: tool_reads_of_tool
-- List what was handed out to a tool of a person, the latest first.
SELECT item_id AS id, vendor, route, at FROM tool_reads
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND vendor = :vendor
ORDER BY at DESC, route, item_id
LIMIT :limit

-- name: tool_reads_of_item
-- List to which tools of a person an item was handed out, the latest first.
SELECT item_id AS id, vendor, route, max(at) AS at FROM tool_reads
WHERE tenant_id = :tenant_id AND item_id = :id AND user_id = ANY (:user_ids::uuid[])
GROUP BY item_id, vendor, route ORDER BY 4 DESC, vendor, route
LIMIT :limit
