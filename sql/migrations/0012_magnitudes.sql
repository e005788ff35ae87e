-- Two bits of each dimension of a vector stand in the covering index, by which recall chooses what it compares exactly: its
-- sign, as before, and whether it is far from zero. Both follow from the vector, whoever writes it.
CREATE FUNCTION magnitude(embedding vector) RETURNS bit varying
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (
        -- 0.98 standard deviations, where two bits a dimension lose least of what is normally distributed (Lloyd, Max).
        SELECT (binary_quantize(embedding - array_fill(far, ARRAY[width])::vector)
                | binary_quantize(array_fill(-far, ARRAY[width])::vector - embedding))::bit varying
        FROM (SELECT (0.98 * vector_norm(embedding) / sqrt(vector_dims(embedding)))::real AS far, vector_dims(embedding) AS width)
             AS of_it
    );
DROP INDEX recall_index_scan;
ALTER TABLE recall_index DROP COLUMN signature;
ALTER TABLE recall_index
    ADD COLUMN signature bit varying GENERATED ALWAYS AS (binary_quantize(embedding)::bit varying) STORED,
    ADD COLUMN magnitude bit varying
        GENERATED ALWAYS AS (CASE WHEN embedding IS NOT NULL THEN magnitude(embedding) END) STORED;
CREATE INDEX recall_index_scan ON recall_index (tenant_id, run_id)
    INCLUDE (id, visibility, user_id, vendors, at, expires_at, length, signature, magnitude);
