-- Adds to what the materialised views over a table know of the rows inserted, updated and deleted there since they were
-- built. A view names its source tables in its creation metadata, each with such counts.
CREATE OR REPLACE FUNCTION count_source_changes(in_table_id bigint, inserted bigint, updated bigint, deleted bigint)
RETURNS void
LANGUAGE sql AS $$
    UPDATE tbl v SET details = jsonb_set(v.details, '{creationMetadata,sourceTables}', (
               SELECT jsonb_agg(CASE WHEN s.source @> named.pattern OR s.source @> named.pattern_by_id
                                     THEN s.source || jsonb_build_object(
                                         'insertedCount', coalesce((s.source ->> 'insertedCount')::bigint, 0) + inserted,
                                         'updatedCount', coalesce((s.source ->> 'updatedCount')::bigint, 0) + updated,
                                         'deletedCount', coalesce((s.source ->> 'deletedCount')::bigint, 0) + deleted)
                                     ELSE s.source END ORDER BY s.place)
                 FROM jsonb_array_elements(v.details #> '{creationMetadata,sourceTables}')
                      WITH ORDINALITY AS s (source, place)))
      FROM tbl t, LATERAL (
               SELECT jsonb_build_object('table', jsonb_build_object('dbName', t.database, 'tableName', t.name)),
                      jsonb_build_object('table', jsonb_build_object('id', t.id))) AS named (pattern, pattern_by_id)
     WHERE t.id = in_table_id AND v.table_type = 'MATERIALIZED_VIEW'
       AND (v.details #> '{creationMetadata,sourceTables}' @> jsonb_build_array(named.pattern)
            OR v.details #> '{creationMetadata,sourceTables}' @> jsonb_build_array(named.pattern_by_id));
$$;
