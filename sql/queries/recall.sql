-- name: recall
-- What for: the rows of a viewer's scope nearest to a question, by meaning and by words, in one statement.
-- By meaning: the 200 nearest by signature (Hamming distance, from the covering index), then exactly (cosine).
-- By words: BM25 (k1 1.2, b 0.75) with document frequencies and lengths counted in the readable scope only, since
-- those of unseen rows would move a viewer's ranking. Sums run in term order, so that a score's last bit doesn't
-- depend on where rows lie on disk.
-- $1 tenant, $2 runs, $3 pooled, $4 visibilities, $5 readers, $6 vendor, $7 now, $8 question's vector or NULL,
-- $9 its terms, $10 how many by each way, $11 ids to leave out (already in the prompt).
WITH nearest AS (
    SELECT id FROM recall_index
    WHERE tenant_id = $1 AND run_id = ANY ($2::text[])
          AND may_read(run_id, visibility, user_id, vendors, $3::text[], $4::text[], $5::uuid[], $6)
          AND at <= $7 AND (expires_at IS NULL OR expires_at > $7) AND signature IS NOT NULL AND $8::vector IS NOT NULL
          AND id <> ALL ($11::uuid[])
    ORDER BY bit_count(signature # binary_quantize($8::vector)::bit varying), id
    LIMIT 200
), meant AS (
    SELECT r.id FROM nearest JOIN recall_index AS r ON r.tenant_id = $1 AND r.id = nearest.id
    ORDER BY r.embedding <=> $8::vector, r.id
    LIMIT $10
), extent AS (
    SELECT count(*) AS items, greatest(sum(length), 1) AS length FROM recall_index
    WHERE cardinality($9::text[]) > 0 AND tenant_id = $1 AND run_id = ANY ($2::text[])
          AND may_read(run_id, visibility, user_id, vendors, $3::text[], $4::text[], $5::uuid[], $6)
          AND at <= $7 AND (expires_at IS NULL OR expires_at > $7)
), hits AS (
    SELECT item_id, term, tf, length, count(*) OVER (PARTITION BY term) AS df FROM recall_terms
    WHERE tenant_id = $1 AND run_id = ANY ($2::text[]) AND term = ANY ($9::text[])
          AND may_read(run_id, visibility, user_id, vendors, $3::text[], $4::text[], $5::uuid[], $6)
          AND at <= $7 AND (expires_at IS NULL OR expires_at > $7)
), worded AS (
    SELECT item_id AS id,
           sum(ln(1 + (items - df + 0.5) / (df + 0.5))::float8 * tf * 2.2
               / (tf + 1.2 * (0.25 + 0.75 * hits.length * items / extent.length)) ORDER BY term) AS words
    FROM hits CROSS JOIN extent
    GROUP BY item_id
), named AS (
    SELECT id FROM worded WHERE id <> ALL ($11::uuid[]) ORDER BY words DESC, id LIMIT $10
), candidates AS (
    SELECT id FROM meant UNION SELECT id FROM named
)
SELECT r.id, r.kind, r.run_id, r.visibility, r.user_id, r.vendors, r.at,
       1 - (r.embedding <=> $8::vector) AS meaning, coalesce(w.words, 0) AS words,
       coalesce(m.text, y.text, s.text) AS text, coalesce(m.author, y.author, '') AS author,
       coalesce(y.kind, s.tier, 'episode') AS detail,
       CASE WHEN m.id IS NOT NULL THEN ARRAY[m.external_id]
            ELSE ARRAY(SELECT source.external_id FROM lineage AS l
                       JOIN messages AS source ON source.tenant_id = $1 AND source.id = l.source_id
                       WHERE l.tenant_id = $1 AND l.item_id = r.id ORDER BY source.at, source.seq)
       END AS messages
FROM candidates
JOIN recall_index AS r ON r.tenant_id = $1 AND r.id = candidates.id
LEFT JOIN worded AS w ON w.id = r.id
LEFT JOIN episodes AS e ON r.kind = 'episode' AND e.tenant_id = $1 AND e.id = r.id
LEFT JOIN messages AS m ON m.tenant_id = $1 AND m.id = e.message_id
LEFT JOIN memories AS y ON r.kind = 'memory' AND y.tenant_id = $1 AND y.id = r.id
LEFT JOIN summaries AS s ON r.kind = 'summary' AND s.tenant_id = $1 AND s.id = r.id
ORDER BY r.id

-- name: readable_ids
-- What for: the predicate alone, for the test that holds it against the pure one. Parameters $1 to $6 as in recall.
SELECT id FROM recall_index
WHERE tenant_id = $1 AND run_id = ANY ($2::text[])
      AND may_read(run_id, visibility, user_id, vendors, $3::text[], $4::text[], $5::uuid[], $6)

-- name: summaries_readable
-- What for: a conversation's latest summaries, so many of each tier, oldest first; the last N are taken inside each run.
-- $1 tenant, $2 runs, $3 pooled, $4 visibilities, $5 readers, $6 vendor, $7 tiers, $8 how many of each.
SELECT s.id, s.run_id, s.visibility, s.user_id, s.tier, s.text, s.starts_at, s.ends_at, s.messages
FROM unnest($2::text[]) AS scope (run_id)
CROSS JOIN unnest($7::text[], $8::int[]) AS wanted (tier, most)
CROSS JOIN LATERAL (
    SELECT id, run_id, visibility, user_id, tier, text, starts_at, ends_at,
           ARRAY(SELECT source.external_id FROM lineage AS l
                 JOIN messages AS source ON source.tenant_id = $1 AND source.id = l.source_id
                 WHERE l.tenant_id = $1 AND l.item_id = summaries.id ORDER BY source.at, source.seq) AS messages
    FROM summaries
    WHERE tenant_id = $1 AND run_id = scope.run_id AND tier = wanted.tier
          AND may_read(run_id, visibility, user_id, NULL, $3::text[], $4::text[], $5::uuid[], $6)
    ORDER BY ends_at DESC, id
    LIMIT wanted.most
) AS s
ORDER BY s.ends_at, s.id
