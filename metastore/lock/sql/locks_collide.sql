-- Whether a requested lock has to wait for an earlier one of another holder in the same database (transactions.md
-- §3.3): they overlap, and their types do not go together. An empty table stands for the whole database, an empty
-- partition for the whole table. The one place that knows the matrix; simple enough to be inlined.
CREATE OR REPLACE FUNCTION locks_collide(
    asked_type text, asked_tbl text, asked_partition text, type text, tbl text, partition text
) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT (asked_tbl = '' OR tbl IN ('', asked_tbl))
       AND (asked_partition = '' OR partition IN ('', asked_partition))
       AND CASE asked_type
               WHEN 'r' THEN type = 'e'
               WHEN 'w' THEN type IN ('x', 'e')
               WHEN 'x' THEN type <> 'r'
               ELSE true
           END
       -- DDL reads a database only to keep it from being dropped: that goes with an exclusive lock inside it.
       AND NOT (asked_type = 'r' AND asked_tbl = '' AND type = 'e' AND tbl <> '')
       AND NOT (asked_type = 'e' AND asked_tbl <> '' AND type = 'r' AND tbl = '');
$$;
