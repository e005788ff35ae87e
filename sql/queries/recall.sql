-- name: recall_search
-- Find the readable items nearest to a question, by meaning and by words, in one statement. A long text has a row for
-- each of its passages; the item counts as its best one. Its text is the passage nearest by meaning and the one with the
-- best words, with `parts` for their numbers and `of` for how many there are (NULL: the text is whole).
-- By meaning, in three steps: the 1000 nearest by the signs of their dimensions (Hamming distance, from the covering
-- index); of those, the 200 nearest by signs and magnitudes, each dimension weighted as in the question's vector; and
-- those exactly (cosine), from the heap. More of each in a scope of more than 15,000 and 25,000 rows.
-- By words: BM25 (k1 1.2, b 0.75) with document frequencies and lengths counted in the readable scope only, since those
-- of unreadable rows would change a viewer's ranking. A term's share of a score is rounded to a multiple of 1e-12 and
-- summed as a whole number, so that a score's last bit does not depend on where rows lie on disk.
-- Neighbours: the messages just before and after the best third of each kind in the same conversation, within an hour,
-- since an answer seldom repeats the words of its question. The nearest message that the viewer may read is taken, so an
-- unreadable message does not separate two others; a message after `now` is not taken.
-- Replies: the first three of the 60 readable messages after such a row, within half an hour, that reply to it or to its
-- author: in a busy room the next message is of another discussion, and an answer names whom it is for.
-- Newer: what the question is about may have changed since, in words that are far from it ("I live in Hamburg", "we moved
-- to Berlin"). So of the best six by meaning, apart from questions and what an agent said, the one that the question's
-- words speak for most is looked up in turn, or the oldest that is more like it than the question is, since it may be the
-- newer one itself: of the rows after it among those nearest by signs, the best few by the sum of their similarities to
-- it and to the question.
-- `likeness` is this sum, for the statement `newer_than`; `only_newer` is true for what nothing else found.
-- `rarities`, the weights of the terms, are in the first row alone.
-- `matched` has a bit for each term that a row contains, the first term's the lowest.
-- Every step is written so that one plan fits scopes of any size, with statistics or without: what is the same for all
-- rows is a subquery, which runs once; excluded rows are removed after a limit that is larger by as many; OFFSET 0 keeps
-- a subquery a look-up by key for each row.
-- ltrim() reads a whole text, so only those that begin with what it takes away are given to it.
-- A message's text is followed by the texts of its files and voice notes (message_words).
-- `vector` may be NULL. `terms` are distinct. `limit` applies to each kind. `exclude` are ids that the prompt contains
-- already; those of them that may be in several passages are the `exclude_long` ones, whose rows are counted. Rows before
-- `since` and after `until` are neither found nor counted, nor those of others than the `authors`
-- (NULL: everybody's). `embedder` is the one of `vector`: when the stored vectors belong to another
-- one, only words are searched. `weights` are two bit strings: the lower and the higher bit of each dimension's weight,
-- from 0 to 3.
WITH excluded AS MATERIALIZED (
    SELECT cardinality(:exclude::uuid[]) + count(*) AS items FROM recall_index
    WHERE tenant_id = :tenant_id AND id = ANY (:exclude_long::uuid[])
), question AS MATERIALIZED (
    SELECT :vector::vector AS vector, (:weights::bit varying[])[1] AS lower_bits,
           (:weights::bit varying[])[2] AS higher_bits
    WHERE :vector::vector IS NOT NULL AND (SELECT value FROM deployment WHERE key = 'embedder') = :embedder::jsonb
), scope AS MATERIALIZED (
    SELECT count(*) AS items, count(*) / greatest(sum(length), 1)::float8 AS inverse_mean_length FROM recall_index
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
          AND may_read(namespace, visibility, user_id, vendors, :pooled::text[], :visibilities::text[],
              :readers::uuid[], :vendor, :rooms::text[])
          AND at BETWEEN :since AND :until AND (expires_at IS NULL OR expires_at > :now)
          AND (:authors::uuid[] IS NULL OR user_id = ANY (:authors::uuid[]))
), nearest_by_signs AS MATERIALIZED (
    SELECT id, part, user_id, at, signature, magnitude FROM (
        SELECT id, part, user_id, at, signature, magnitude,
               signature <~> (SELECT binary_quantize(vector) FROM question) AS distance
        FROM recall_index
        WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
              AND may_read(namespace, visibility, user_id, vendors, :pooled::text[], :visibilities::text[],
                  :readers::uuid[], :vendor, :rooms::text[])
              AND at BETWEEN :since AND :until AND (expires_at IS NULL OR expires_at > :now) AND signature IS NOT NULL
              AND (:authors::uuid[] IS NULL OR user_id = ANY (:authors::uuid[]))
              AND EXISTS (SELECT FROM question)
        ORDER BY distance, id, part
        LIMIT (SELECT greatest(1000, items / 15) FROM scope) + (SELECT items FROM excluded)
    ) AS nearest
    WHERE id NOT IN (SELECT unnest(:exclude::uuid[]))
    ORDER BY distance, id, part
    LIMIT (SELECT greatest(1000, items / 15) FROM scope)
), nearest AS (
    SELECT id, part FROM (
        SELECT id, part, signature # (SELECT binary_quantize(vector)::bit varying FROM question) AS differs, magnitude
        FROM nearest_by_signs OFFSET 0
    ) AS nearest_by_signs
    ORDER BY 2 * bit_count(differs & (SELECT lower_bits FROM question))
             + 4 * bit_count(differs & (SELECT higher_bits FROM question))
             - bit_count((differs # magnitude) & (SELECT lower_bits FROM question))
             - 2 * bit_count((differs # magnitude) & (SELECT higher_bits FROM question)), id, part
    LIMIT (SELECT greatest(200, items / 125) FROM scope)
), by_meaning AS (
    SELECT id, part, distance FROM (
        SELECT DISTINCT ON (id) id, part, distance FROM (
            SELECT r.id, r.part, r.embedding <=> (SELECT vector FROM question) AS distance FROM nearest
            CROSS JOIN LATERAL (
                SELECT id, part, embedding FROM recall_index
                WHERE tenant_id = :tenant_id AND id = nearest.id AND part = nearest.part OFFSET 0
            ) AS r
        ) AS passage
        ORDER BY id, distance, part
    ) AS item
    ORDER BY distance, id
    LIMIT :limit
), term_matches AS MATERIALIZED (
    SELECT item_id, part, array_position(:terms::text[], term) AS n, tf::float8 AS tf, length FROM recall_terms
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[]) AND term = ANY (:terms::text[])
          AND may_read(namespace, visibility, user_id, vendors, :pooled::text[], :visibilities::text[],
              :readers::uuid[], :vendor, :rooms::text[])
          AND at BETWEEN :since AND :until AND (expires_at IS NULL OR expires_at > :now)
          AND (:authors::uuid[] IS NULL OR user_id = ANY (:authors::uuid[]))
), weights AS MATERIALIZED (
    SELECT array_agg((2.2 * ln(1 + (items - coalesce(df, 0) + 0.5) / (coalesce(df, 0) + 0.5)))::float8 ORDER BY n)
               AS term_weights
    FROM generate_subscripts(:terms::text[], 1) AS n
    CROSS JOIN scope
    LEFT JOIN (SELECT n, count(*) AS df FROM term_matches GROUP BY n) AS found USING (n)
), scored AS MATERIALIZED (
    SELECT item_id AS id, part,
           sum(((SELECT term_weights FROM weights)[n] * tf
                / (tf + 1.2::float8 * (0.25::float8 + 0.75::float8 * length * (SELECT inverse_mean_length FROM scope)))
                * 1e12::float8)::bigint) AS words,
           bit_or(1::bigint << (n - 1)) AS matched
    FROM term_matches GROUP BY item_id, part
), by_words AS (
    SELECT id, part, words FROM (
        SELECT DISTINCT ON (id) id, part, words FROM (
            SELECT id, part, words FROM scored WHERE words > 0 ORDER BY words DESC, id, part
                LIMIT 4 * :limit + (SELECT items FROM excluded)
        ) AS best
        WHERE id <> ALL (:exclude::uuid[])
        ORDER BY id, words DESC, part
    ) AS item
    ORDER BY words DESC, id
    LIMIT :limit
), targets AS MATERIALIZED (
    SELECT best_rows.id, target.* FROM (
        (SELECT id FROM by_meaning ORDER BY distance, id LIMIT :limit / 3)
        UNION
        (SELECT id FROM by_words ORDER BY words DESC, id LIMIT :limit / 3)
    ) AS best_rows
    CROSS JOIN LATERAL (
        SELECT message.conversation_id, message.at, message.seq, message.external_id, message.user_id,
               length(lower(message.author)) AS author_length,
               ARRAY[lower(message.author) || ':', lower(message.author) || ',', lower(message.author) || ' '] AS addressed
        FROM episodes AS e JOIN messages AS message ON message.tenant_id = :tenant_id AND message.id = e.message_id
        WHERE e.tenant_id = :tenant_id AND e.id = best_rows.id OFFSET 0
    ) AS target
), neighbours AS MATERIALIZED (
    SELECT target.id, before.id AS before, after.id AS after FROM targets AS target
    LEFT JOIN LATERAL (
        SELECT episode.id FROM messages AS message
        CROSS JOIN LATERAL (SELECT id FROM episodes WHERE tenant_id = :tenant_id
            AND message_id = message.id OFFSET 0) AS episode
        WHERE message.tenant_id = :tenant_id AND message.conversation_id = target.conversation_id
              AND (message.at, message.seq) < (target.at, target.seq) AND message.at >= greatest(target.at - interval '1 hour', :since)
              AND message.namespace = ANY (:namespaces::text[])
              AND may_read(message.namespace, message.visibility, message.user_id, NULL, :pooled::text[], :visibilities::text[],
                  :readers::uuid[], :vendor, :rooms::text[])
        ORDER BY message.at DESC, message.seq DESC
        LIMIT 1
    ) AS before ON true
    LEFT JOIN LATERAL (
        SELECT episode.id FROM messages AS message
        CROSS JOIN LATERAL (SELECT id FROM episodes WHERE tenant_id = :tenant_id
            AND message_id = message.id OFFSET 0) AS episode
        WHERE message.tenant_id = :tenant_id AND message.conversation_id = target.conversation_id
              AND (message.at, message.seq) > (target.at, target.seq) AND message.at <= least(target.at + interval '1 hour', :until)
              AND message.namespace = ANY (:namespaces::text[])
              AND may_read(message.namespace, message.visibility, message.user_id, NULL, :pooled::text[], :visibilities::text[],
                  :readers::uuid[], :vendor, :rooms::text[])
        ORDER BY message.at, message.seq
        LIMIT 1
    ) AS after ON true
), replies AS MATERIALIZED (
    SELECT reply.id, array_agg(target.id ORDER BY target.id) AS reply_to FROM targets AS target
    CROSS JOIN LATERAL (
        SELECT following.id FROM (
            SELECT message.id, message.at, message.seq, message.reply_to, message.mentions, message.text
            FROM messages AS message
            WHERE message.tenant_id = :tenant_id AND message.conversation_id = target.conversation_id
                  AND (message.at, message.seq) > (target.at, target.seq)
                  AND message.at <= least(target.at + interval '30 minutes', :until) AND message.agent_id IS NULL
                  AND message.namespace = ANY (:namespaces::text[])
                  AND may_read(message.namespace, message.visibility, message.user_id, NULL, :pooled::text[],
                      :visibilities::text[], :readers::uuid[], :vendor, :rooms::text[])
            ORDER BY message.at, message.seq
            LIMIT 60
        ) AS following
        WHERE following.reply_to = target.external_id OR target.user_id = ANY (following.mentions)
              OR lower(left(CASE WHEN starts_with(following.text, '@') THEN ltrim(following.text, '@')
                                 ELSE following.text END, target.author_length + 1)) = ANY (target.addressed)
        ORDER BY following.at, following.seq
        LIMIT 3
    ) AS message
    CROSS JOIN LATERAL (SELECT id FROM episodes WHERE tenant_id = :tenant_id
        AND message_id = message.id OFFSET 0) AS reply
    GROUP BY reply.id
), told AS MATERIALIZED (
    SELECT r.id, r.at, r.user_id, r.embedding, said.distance,
           row_number() OVER (ORDER BY said.distance - 0.2::float8 * coalesce(words / (SELECT max(words) FROM by_words), 0), said.id)
               AS place
    FROM (SELECT id, part, distance FROM by_meaning ORDER BY distance, id LIMIT 6) AS said
    LEFT JOIN scored ON scored.id = said.id AND scored.part = said.part
    CROSS JOIN LATERAL (
        SELECT id, at, user_id, embedding FROM recall_index
        WHERE tenant_id = :tenant_id AND id = said.id AND part = said.part AND embedding IS NOT NULL OFFSET 0
    ) AS r
    WHERE NOT EXISTS (SELECT FROM episodes AS e
                      JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = e.message_id
                      WHERE e.tenant_id = :tenant_id AND e.id = said.id
                            AND (m.agent_id IS NOT NULL OR right(m.text, 1) = '?'))
), statements AS MATERIALIZED (
    SELECT told.id, told.at, told.user_id, told.embedding,
           binary_quantize(told.embedding + (SELECT vector FROM question)) AS signature
    FROM told CROSS JOIN (SELECT embedding, distance FROM told WHERE place = 1) AS first
    WHERE place = 1 OR (told.embedding <=> first.embedding) <= 0.9::float8 * first.distance
    ORDER BY told.at, told.id
    LIMIT 1
), newer AS MATERIALIZED (
    SELECT statement.id AS statement, later.id, later.part, later.likeness FROM statements AS statement
    CROSS JOIN LATERAL (
        SELECT DISTINCT ON (id) id, part, likeness FROM (
            SELECT r.id, r.part, near.own, r.likeness FROM (
                SELECT id, part, user_id = statement.user_id AS own,
                       (signature <~> statement.signature)
                       - CASE WHEN user_id = statement.user_id THEN 20 ELSE 0 END AS distance
                FROM nearest_by_signs WHERE at > statement.at
                ORDER BY distance, id, part
                LIMIT 40
            ) AS near
            CROSS JOIN LATERAL (
                SELECT id, part, 2 - (embedding <=> statement.embedding)
                                   - (embedding <=> (SELECT vector FROM question)) AS likeness
                FROM recall_index WHERE tenant_id = :tenant_id AND id = near.id AND part = near.part OFFSET 0
            ) AS r
            ORDER BY likeness + CASE WHEN near.own THEN 0.3 ELSE 0 END DESC, id, part
            LIMIT 10
        ) AS passage
        ORDER BY id, likeness DESC, part
    ) AS later
), candidates AS (
    SELECT found.id, found.parts, found.only_newer, coalesce(scored.words, 0) AS words, coalesce(scored.matched, 0) AS matched
    FROM (
        SELECT id, coalesce(max(by_words), max(by_meaning), 1) AS best,
               array_remove(ARRAY[coalesce(max(by_meaning), max(by_words), max(by_likeness), 1), max(by_words)], NULL)
                   AS parts,
               bool_and(by_likeness IS NOT NULL) AS only_newer
        FROM (
            SELECT id, part AS by_meaning, NULL::smallint AS by_words, NULL::smallint AS by_likeness FROM by_meaning
            UNION ALL
            SELECT id, NULL, part, NULL FROM by_words
            UNION ALL
            SELECT id, NULL, NULL, part FROM newer
            UNION ALL
            SELECT neighbour.id, NULL, NULL, NULL
            FROM (SELECT before AS id FROM neighbours UNION SELECT after FROM neighbours UNION SELECT id FROM replies)
                 AS neighbour
            WHERE neighbour.id <> ALL (:exclude::uuid[])
        ) AS found
        GROUP BY id
    ) AS found
    LEFT JOIN scored ON scored.id = found.id AND scored.part = found.best
)
SELECT r.id, r.kind, r.namespace, r.visibility, r.user_id, r.vendors, r.at,
       1 - r.distance AS meaning, candidates.words::float8 / 1e12 AS words,
       CASE WHEN r.chars IS NULL THEN coalesce(m.text, memory.text, s.text)
            ELSE (SELECT string_agg(substr(coalesce(m.text, memory.text, s.text), passage.start + 1, passage.chars),
                                    E'\n […]\n' ORDER BY passage.part)
                  FROM recall_index AS passage
                  WHERE passage.tenant_id = :tenant_id AND passage.id = r.id AND passage.part = ANY (candidates.parts))
       END AS text, coalesce(m.author, memory.author, '') AS author,
       coalesce(memory.kind, s.tier, 'episode') AS detail, s.starts_at,
       coalesce(m.by_agent, false) AS by_agent,
       CASE WHEN NOT m.with_files THEN NULL
            WHEN r.chars IS NULL THEN length(m.said)
            ELSE (SELECT coalesce(length(string_agg(substr(m.said, passage.start + 1, passage.chars),
                                                    E'\n […]\n' ORDER BY passage.part)), 0)
                  FROM recall_index AS passage
                  WHERE passage.tenant_id = :tenant_id AND passage.id = r.id AND passage.part = ANY (candidates.parts)
                        AND passage.start < length(m.said))
       END AS files_at,
       CASE WHEN m.external_id IS NOT NULL THEN ARRAY[m.external_id]
            ELSE ARRAY(SELECT source.external_id FROM lineage AS l
                       JOIN messages AS source ON source.tenant_id = :tenant_id AND source.id = l.source_id
                       WHERE l.tenant_id = :tenant_id AND l.item_id = r.id AND l.source_kind = 'message'
                       ORDER BY source.at, source.seq)
       END AS messages,
       CASE WHEN r.chars IS NOT NULL THEN candidates.parts END AS parts,
       CASE WHEN r.chars IS NOT NULL THEN (SELECT max(part) FROM recall_index WHERE tenant_id = :tenant_id AND id = r.id) END
           AS of,
       candidates.only_newer, later.statement AS newer_than, later.likeness,
       neighbours.before, neighbours.after, replies.reply_to, candidates.matched,
       CASE WHEN row_number() OVER (ORDER BY r.id) = 1 THEN (SELECT term_weights FROM weights) END AS rarities,
       (SELECT items FROM scope) AS items
FROM candidates
CROSS JOIN LATERAL (
    SELECT id, kind, namespace, visibility, user_id, vendors, at, chars,
           embedding <=> (SELECT vector FROM question) AS distance
    FROM recall_index
    WHERE tenant_id = :tenant_id AND id = candidates.id AND part = ANY (candidates.parts)
    ORDER BY distance, part
    LIMIT 1
) AS r
LEFT JOIN neighbours ON neighbours.id = candidates.id
LEFT JOIN replies ON replies.id = candidates.id
LEFT JOIN newer AS later ON later.id = candidates.id
LEFT JOIN LATERAL (
    SELECT CASE WHEN message.attachments = '[]' THEN message.text
                ELSE message_words(message.text, message.attachments) END AS text,
           message.text AS said, message.author, message.external_id, message.agent_id IS NOT NULL AS by_agent,
           message.attachments <> '[]' AND message_words(message.text, message.attachments) <> message.text AS with_files
    FROM episodes AS e JOIN messages AS message ON message.tenant_id = :tenant_id AND message.id = e.message_id
    WHERE r.kind = 'episode' AND e.tenant_id = :tenant_id AND e.id = r.id OFFSET 0
) AS m ON true
LEFT JOIN LATERAL (
    SELECT kind, text, author FROM memories WHERE r.kind = 'memory' AND tenant_id = :tenant_id AND id = r.id OFFSET 0
) AS memory ON true
LEFT JOIN LATERAL (
    SELECT tier, text, starts_at FROM summaries WHERE r.kind = 'summary' AND tenant_id = :tenant_id AND id = r.id OFFSET 0
) AS s ON true
ORDER BY r.id

-- name: recall_words
-- List the terms that begin with some letters, of what recall_search would find in a scope at any time: what a word may
-- stand for that the scope has nowhere. From each term the index is asked for the next one, so that what counts is how
-- many words there are, and not how often they were used.
WITH RECURSIVE words AS (
    SELECT namespace, beginning,
           (SELECT min(r.term) FROM recall_terms AS r
            WHERE r.tenant_id = :tenant_id AND r.namespace = scope.namespace AND r.term >= beginning
                  AND may_read(r.namespace, r.visibility, r.user_id, r.vendors, :pooled::text[], :visibilities::text[],
                      :readers::uuid[], :vendor, :rooms::text[])
                  AND r.at BETWEEN :since AND :now AND (r.expires_at IS NULL OR r.expires_at > :now)) AS term
    FROM unnest(:namespaces::text[]) AS scope (namespace) CROSS JOIN unnest(:beginnings::text[]) AS beginning
    UNION ALL
    SELECT namespace, beginning,
           (SELECT min(r.term) FROM recall_terms AS r
            WHERE r.tenant_id = :tenant_id AND r.namespace = words.namespace AND r.term > words.term
                  AND may_read(r.namespace, r.visibility, r.user_id, r.vendors, :pooled::text[], :visibilities::text[],
                      :readers::uuid[], :vendor, :rooms::text[])
                  AND r.at BETWEEN :since AND :now AND (r.expires_at IS NULL OR r.expires_at > :now))
    FROM words WHERE starts_with(term, beginning)
)
SELECT DISTINCT term FROM words WHERE starts_with(term, beginning) ORDER BY term LIMIT :limit

-- name: recall_latest
-- List the latest items that a viewer may read, newest first, whatever they say: of some `kinds` of the index, memories of
-- some `details` (NULL: all kinds of them), and what some `authors` own (NULL: everybody's). What agents said is left out.
-- The columns are those of recall_search.
WITH latest AS MATERIALIZED (
    SELECT id, kind, namespace, visibility, user_id, vendors, at, chars FROM recall_index AS r
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
          AND may_read(namespace, visibility, user_id, vendors, :pooled::text[], :visibilities::text[],
              :readers::uuid[], :vendor, :rooms::text[])
          AND at BETWEEN :since AND :until AND (expires_at IS NULL OR expires_at > :now) AND part = 1
          AND id <> ALL (:exclude::uuid[]) AND kind = ANY (:kinds::text[])
          AND (:authors::uuid[] IS NULL OR user_id = ANY (:authors::uuid[]))
          AND (:details::text[] IS NULL OR EXISTS (SELECT FROM memories AS m WHERE m.tenant_id = :tenant_id AND m.id = r.id
              AND m.kind = ANY (:details::text[])))
          AND (kind <> 'episode' OR EXISTS (SELECT FROM episodes AS e
              JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = e.message_id
              WHERE e.tenant_id = :tenant_id AND e.id = r.id AND m.agent_id IS NULL))
    ORDER BY at DESC, id
    LIMIT :limit
)
SELECT r.id, r.kind, r.namespace, r.visibility, r.user_id, r.vendors, r.at, NULL::float8 AS meaning, 0::float8 AS words,
       CASE WHEN r.chars IS NULL THEN coalesce(m.text, memory.text, s.text)
            ELSE left(coalesce(m.text, memory.text, s.text), r.chars) END AS text,
       coalesce(m.author, memory.author, '') AS author, coalesce(memory.kind, s.tier, 'episode') AS detail, s.starts_at,
       false AS by_agent, CASE WHEN m.with_files THEN least(length(m.said), r.chars) END AS files_at,
       CASE WHEN m.external_id IS NOT NULL THEN ARRAY[m.external_id]
            ELSE ARRAY(SELECT source.external_id FROM lineage AS l
                       JOIN messages AS source ON source.tenant_id = :tenant_id AND source.id = l.source_id
                       WHERE l.tenant_id = :tenant_id AND l.item_id = r.id AND l.source_kind = 'message'
                       ORDER BY source.at, source.seq)
       END AS messages,
       CASE WHEN r.chars IS NOT NULL THEN ARRAY[1] END AS parts,
       CASE WHEN r.chars IS NOT NULL THEN (SELECT max(part) FROM recall_index WHERE tenant_id = :tenant_id AND id = r.id) END
           AS of,
       false AS only_newer, NULL::uuid AS newer_than, NULL::float8 AS likeness,
       NULL::uuid AS before, NULL::uuid AS after, NULL::uuid[] AS reply_to, 0 AS matched
FROM latest AS r
LEFT JOIN LATERAL (
    SELECT CASE WHEN message.attachments = '[]' THEN message.text
                ELSE message_words(message.text, message.attachments) END AS text,
           message.text AS said, message.author, message.external_id,
           message.attachments <> '[]' AND message_words(message.text, message.attachments) <> message.text AS with_files
    FROM episodes AS e JOIN messages AS message ON message.tenant_id = :tenant_id AND message.id = e.message_id
    WHERE r.kind = 'episode' AND e.tenant_id = :tenant_id AND e.id = r.id OFFSET 0
) AS m ON true
LEFT JOIN memories AS memory ON r.kind = 'memory' AND memory.tenant_id = :tenant_id AND memory.id = r.id
LEFT JOIN summaries AS s ON r.kind = 'summary' AND s.tenant_id = :tenant_id AND s.id = r.id
ORDER BY r.at DESC, r.id

-- name: recall_people
-- List those people of whom a viewer may read something that can be recalled, and whose name has one of some words, in
-- lower case.
SELECT u.id, u.name FROM users AS u
WHERE u.tenant_id = :tenant_id AND regexp_split_to_array(lower(u.name), '\W+') && :terms::text[]
      AND EXISTS (SELECT FROM recall_index
                  WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[]) AND user_id = u.id
                        AND may_read(namespace, visibility, user_id, vendors, :pooled::text[], :visibilities::text[],
                            :readers::uuid[], :vendor, :rooms::text[])
                        AND at <= :until)
ORDER BY u.id

-- name: recall_around
-- Get each of some recalled messages (`episode`) with the `each` messages before and after it in its conversation,
-- oldest first: those of at most `most_bytes` and at most `within` before or after it (NULL: all). Like those beside a hit
-- of a search, they are indexed messages that the viewer may read, and none is before `since` or after `until`. A
-- message's text is followed by the texts of its files and voice notes; message_words() takes longer than all else here.
WITH target AS MATERIALIZED (
    SELECT e.id, m.conversation_id, m.at, m.seq FROM episodes AS e
    JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = e.message_id
    WHERE e.tenant_id = :tenant_id AND e.id = ANY (:episode_ids::uuid[]) AND m.at BETWEEN :since AND :until
          AND m.namespace = ANY (:namespaces::text[])
          AND may_read(m.namespace, m.visibility, m.user_id, NULL, :pooled::text[], :visibilities::text[],
              :readers::uuid[], :vendor, :rooms::text[])
)
SELECT target.id AS episode, near.id, near.external_id,
       told.text, CASE WHEN told.text <> near.text THEN length(near.text) END AS files_at,
       near.author, near.at, near.namespace, near.visibility, near.user_id,
       near.by_agent
FROM target CROSS JOIN LATERAL (
    (SELECT episode.id, earlier.external_id, earlier.text, earlier.attachments, earlier.author, earlier.at,
            earlier.seq, earlier.namespace,
            earlier.visibility, earlier.user_id, earlier.agent_id IS NOT NULL AS by_agent
     FROM messages AS earlier
     CROSS JOIN LATERAL (SELECT id FROM episodes WHERE tenant_id = :tenant_id
         AND message_id = earlier.id OFFSET 0) AS episode
     WHERE earlier.tenant_id = :tenant_id AND earlier.conversation_id = target.conversation_id
           AND (earlier.at, earlier.seq) <= (target.at, target.seq)
           AND earlier.at >= greatest(target.at - :within::interval, :since)
           AND earlier.namespace = ANY (:namespaces::text[])
           AND may_read(earlier.namespace, earlier.visibility, earlier.user_id, NULL, :pooled::text[],
               :visibilities::text[], :readers::uuid[], :vendor, :rooms::text[])
     ORDER BY earlier.at DESC, earlier.seq DESC
     LIMIT :each::int + 1)
    UNION ALL
    (SELECT episode.id, later.external_id, later.text, later.attachments, later.author, later.at,
            later.seq, later.namespace,
            later.visibility, later.user_id, later.agent_id IS NOT NULL
     FROM messages AS later
     CROSS JOIN LATERAL (SELECT id FROM episodes WHERE tenant_id = :tenant_id
         AND message_id = later.id OFFSET 0) AS episode
     WHERE later.tenant_id = :tenant_id AND later.conversation_id = target.conversation_id
           AND (later.at, later.seq) > (target.at, target.seq)
           AND later.at <= least(target.at + :within::interval, :until)
           AND later.namespace = ANY (:namespaces::text[])
           AND may_read(later.namespace, later.visibility, later.user_id, NULL, :pooled::text[],
               :visibilities::text[], :readers::uuid[], :vendor, :rooms::text[])
     ORDER BY later.at, later.seq
     LIMIT :each::int)
) AS near
CROSS JOIN LATERAL (
    SELECT CASE WHEN near.attachments = '[]' THEN near.text ELSE message_words(near.text, near.attachments) END AS text
    OFFSET 0
) AS told
WHERE :most_bytes::int IS NULL OR octet_length(told.text) <= :most_bytes
ORDER BY near.at, near.seq, target.id

-- name: recall_background
-- Get what a turn knows before it recalls anything, each as a list: the tenant's settings; the linked users of
-- `people`; our count and the API's of the tokens of a model's last prompt (none without a
-- `model`; a prompt of a room's private time, or one cleared by erasure, does not affect later ones); the newest
-- compaction of an agent's view that was made before a message; and, oldest first, the latest `limits` summaries of
-- each tier in each namespace with the latest `within` of each tier that overlap each of some periods (`starts`,
-- `ends`).
SELECT ARRAY(SELECT (key, value) FROM settings WHERE tenant_id = :tenant_id ORDER BY key) AS settings,
       ARRAY(SELECT (u.id, o.id)
             FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id AND o.id <> u.id
                  AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
             WHERE u.tenant_id = :tenant_id AND u.id = ANY (:people::uuid[])
             ORDER BY u.id, o.id) AS linked,
       ARRAY(SELECT (t.counted_tokens, t.prompt_tokens) FROM turns AS t
             JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
             WHERE :model::text IS NOT NULL AND t.tenant_id = :tenant_id AND t.conversation_id = :conversation_id
                   AND t.model = :model
                   AND m.namespace = :namespace
                   AND t.prompt IS NOT NULL AND t.prompt_tokens > 0 AND t.counted_tokens > 0
             ORDER BY t.queued_at DESC, t.id
             LIMIT 1) AS token_counts,
       ARRAY(SELECT (c.id, c.conversation_id, c.agent_id, c.namespace, c.visibility, c.user_id, c.through_at,
                     c.through_seq,
                     c.made_at, c.made_seq, c.messages, c.text, c.tokens, c.model, c.before_tokens, c.after_tokens,
                     c.requested,
                     c.created_at)
             FROM compactions AS c
             WHERE c.tenant_id = :tenant_id AND c.conversation_id = :conversation_id AND c.agent_id = :agent_id
                   AND c.namespace = :namespace
                   AND c.namespace = ANY (:namespaces::text[])
                   AND may_read(c.namespace, c.visibility, c.user_id, NULL, :pooled::text[], :visibilities::text[],
                       :readers::uuid[], :vendor)
                   AND (c.made_at, c.made_seq) < (:before_at, :before_seq)
             ORDER BY c.made_at DESC, c.made_seq DESC, c.id
             LIMIT 1) AS compaction,
       ARRAY(SELECT (s.id, s.namespace, s.visibility, s.user_id, s.tier, s.text, s.starts_at, s.ends_at, s.tokens,
                     ARRAY(SELECT source.external_id FROM lineage AS l
                           JOIN messages AS source ON source.tenant_id = :tenant_id AND source.id = l.source_id
                           WHERE l.tenant_id = :tenant_id AND l.item_id = s.id ORDER BY source.at, source.seq))
             FROM unnest(:namespaces::text[]) AS scope (namespace)
             CROSS JOIN LATERAL (
                 SELECT latest.* FROM unnest(:tiers::text[], :limits::int[]) AS tier_limits (tier, max_summaries)
                 CROSS JOIN LATERAL (
                     SELECT * FROM summaries
                     WHERE tenant_id = :tenant_id AND namespace = scope.namespace AND tier = tier_limits.tier
                           AND ends_at <= :before_at
                           AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[],
                           :readers::uuid[], :vendor)
                     ORDER BY ends_at DESC, id
                     LIMIT tier_limits.max_summaries
                 ) AS latest
                 UNION
                 SELECT within.* FROM unnest(:starts::timestamptz[], :ends::timestamptz[]) AS period (starts, ends)
                 CROSS JOIN unnest(:tiers::text[]) AS tiers (tier)
                 CROSS JOIN LATERAL (
                     SELECT * FROM summaries
                     WHERE tenant_id = :tenant_id AND namespace = scope.namespace AND tier = tiers.tier
                           AND ends_at <= :before_at AND ends_at > period.starts AND starts_at < period.ends
                           AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[],
                           :readers::uuid[], :vendor)
                     ORDER BY ends_at DESC, id
                     LIMIT :within
                 ) AS within
             ) AS s
             ORDER BY s.ends_at, s.id) AS summaries
