-- The clock was put forward or back by `moved_ms`, and shows `now_ms`. Tables stay in the trash for as long as they were to.
-- Of the directories of databases that were dropped later than now, as it was then, nobody can tell any more what came into
-- them after the drop: they go only if no file is left there.
CREATE OR REPLACE FUNCTION catalog_settle_clock(now_ms bigint, moved_ms bigint) RETURNS void
LANGUAGE sql AS $$
    UPDATE directory_removal SET only_if_empty = true
     WHERE moved_ms < 0 AND home_since > to_timestamp(now_ms / 1000.0) - interval '10 minutes' AND NOT only_if_empty;
    -- In ascending order, like everywhere: nobody can deadlock.
    UPDATE dropped_table d SET purge_at = d.purge_at + make_interval(secs => moved_ms / 1000.0)
      FROM (SELECT k.id FROM dropped_table k ORDER BY k.id FOR NO KEY UPDATE) AS kept
     WHERE d.id = kept.id;
$$;
