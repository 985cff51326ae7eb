-- The rows of a table or partition lie in more or fewer files than before, and are the same: what is on record of files
-- and bytes follows, if it is on record. Null if that is not known.
CREATE OR REPLACE FUNCTION resize_statistics(
    in_db text, in_tbl text, in_partition text, more_files bigint, more_bytes bigint
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF more_files IS NULL OR more_bytes IS NULL THEN
        RETURN;
    END IF;
    IF in_partition IS NULL THEN
        UPDATE tbl t
           SET parameters = t.parameters || jsonb_build_object(
                   'numFiles', greatest((t.parameters ->> 'numFiles')::bigint + more_files, 0)::text,
                   'totalSize', greatest((t.parameters ->> 'totalSize')::bigint + more_bytes, 0)::text)
         WHERE t.database = in_db AND t.name = in_tbl
           AND t.parameters ->> 'numFiles' ~ '^[0-9]{1,18}$' AND t.parameters ->> 'totalSize' ~ '^[0-9]{1,18}$';
        RETURN;
    END IF;
    UPDATE partition p
       SET parameters = p.parameters || jsonb_build_object(
               'numFiles', greatest((p.parameters ->> 'numFiles')::bigint + more_files, 0)::text,
               'totalSize', greatest((p.parameters ->> 'totalSize')::bigint + more_bytes, 0)::text)
      FROM tbl t
     WHERE t.database = in_db AND t.name = in_tbl AND p.table_id = t.id AND p.name = in_partition
       AND p.parameters ->> 'numFiles' ~ '^[0-9]{1,18}$' AND p.parameters ->> 'totalSize' ~ '^[0-9]{1,18}$';
END
$$;
