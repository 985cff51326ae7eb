-- The figures of compactions by their names, some with labels (transactions.md §4.12). A table or partition counts by
-- its latest compaction, as in Hive; ages are in seconds, 0 where there is nothing. `versions_ms` is how far back workers
-- and Initiators are looked for, `most_deltas` how many tables or partitions are named for each figure of deltas.
CREATE OR REPLACE FUNCTION compaction_gauges(versions_ms bigint, most_deltas integer, at_most bigint)
RETURNS TABLE (name text, labels jsonb, value double precision)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    instant timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
        WITH latest AS (
            SELECT DISTINCT ON (c.db, c.tbl, c.partition) c.* FROM compaction c
             WHERE c.type <> 'c' ORDER BY c.db, c.tbl, c.partition, c.id DESC
        ), pooled AS (
            SELECT coalesce(c.pool, 'default') AS pool, c.state, count(*) AS number, min(c.enqueued_at) AS enqueued_at,
                   min(c.started_at) AS started_at
              FROM compaction c WHERE c.state IN ('i', 'w') GROUP BY 1, 2
        )
        SELECT 'compaction_num_' || s.name, '{}'::jsonb, count(l.id)::double precision
          FROM (VALUES ('i', 'initiated'), ('w', 'working'), ('r', 'ready_for_cleaning'), ('f', 'failed'),
                       ('s', 'succeeded'), ('a', 'did_not_initiate'), ('c', 'refused'), ('x', 'aborted')) AS s (state, name)
          LEFT JOIN latest l ON l.state = s.state
         GROUP BY s.name
        UNION ALL
        SELECT 'compaction_oldest_' || s.name || '_age_in_sec', '{}',
               coalesce(extract(epoch FROM instant - min(
                   CASE s.state WHEN 'i' THEN c.enqueued_at WHEN 'w' THEN c.started_at ELSE c.cleaner_started_at END)), 0)
          FROM (VALUES ('i', 'enqueue'), ('w', 'working'), ('r', 'cleaning')) AS s (state, name)
          LEFT JOIN compaction c ON c.state = s.state
         GROUP BY s.name
        UNION ALL
        SELECT figure.name, '{}', figure.value
          FROM (SELECT count(DISTINCT c.initiator) AS initiators, count(DISTINCT c.initiator_version) AS initiator_versions,
                       count(DISTINCT coalesce(c.worker, c.last_worker)) AS workers,
                       count(DISTINCT c.worker_version) AS worker_versions
                  FROM compaction c
                 WHERE greatest(c.enqueued_at, c.started_at) > instant - make_interval(secs => versions_ms / 1000.0)) AS n
         CROSS JOIN LATERAL (VALUES ('compaction_num_initiators', n.initiators),
                                    ('compaction_num_initiator_versions', n.initiator_versions),
                                    ('compaction_num_workers', n.workers),
                                    ('compaction_num_worker_versions', n.worker_versions)) AS figure (name, value)
        UNION ALL
        SELECT figure.name, jsonb_build_object('pool', p.pool), figure.value
          FROM pooled p
         CROSS JOIN LATERAL (VALUES
                   ('i', 'compaction_pools_initiated_item_count', p.number::double precision),
                   ('w', 'compaction_pools_working_item_count', p.number),
                   ('i', 'compaction_pools_oldest_enqueue_age_in_sec', extract(epoch FROM instant - p.enqueued_at)),
                   ('w', 'compaction_pools_oldest_working_age_in_sec', extract(epoch FROM instant - p.started_at)))
                   AS figure (state, name, value)
         WHERE figure.state = p.state;
    RETURN QUERY
        SELECT kind.name, jsonb_strip_nulls(jsonb_build_object('table', m.db || '.' || m.tbl, 'partition', m.partition)),
               m.value::double precision
          FROM (VALUES (0, 'compaction_num_obsolete_deltas'), (1, 'compaction_num_active_deltas'),
                       (2, 'compaction_num_small_deltas')) AS kind (type, name)
         CROSS JOIN LATERAL (SELECT * FROM compaction_metric c WHERE c.type = kind.type
                              ORDER BY c.value DESC, c.db, c.tbl, c.partition LIMIT most_deltas) AS m;
    RETURN QUERY
        SELECT 'num_writes_to_disabled_compaction_table', '{}'::jsonb, count(*)::double precision
          FROM (SELECT 1
                  FROM tbl t JOIN database d ON d.name = t.database
                 CROSS JOIN LATERAL (
                        -- The database's word counts more than the table's.
                        SELECT lower(trim(p.value)) = 'true' AS is_off
                          FROM (SELECT 1 AS place, * FROM jsonb_each_text(d.parameters)
                                UNION ALL SELECT 2, * FROM jsonb_each_text(t.parameters)) AS p (place, key, value)
                         WHERE lower(p.key) = 'no_auto_compaction' ORDER BY p.place LIMIT 1) AS switch
                  JOIN completed_component c ON c.db = t.database AND c.tbl = t.name
                 WHERE switch.is_off
                 LIMIT at_most) AS counted;
END
$$;
