-- Takes compactions that still wait out of the queue; per id whether it was done, and the state it was found in, null
-- for an unknown id (transactions.md §4.3).
CREATE OR REPLACE FUNCTION abort_compactions(ids bigint[])
RETURNS TABLE (id bigint, found_state text, aborted boolean)
LANGUAGE sql AS $$
    WITH taken AS (
        UPDATE compaction c SET state = 'x', ended_at = clock_timestamp(), reason = 'aborted before a worker took it'
         WHERE c.id = ANY (ids) AND c.state = 'i'
        RETURNING c.id
    )
    SELECT asked.id, c.state, taken.id IS NOT NULL
      FROM unnest(ids) AS asked (id)
      LEFT JOIN compaction c ON c.id = asked.id
      LEFT JOIN taken ON taken.id = asked.id;
$$;
