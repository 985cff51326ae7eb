"""What the tables must hold in the end, computed with pandas alone: the same rules, none of our code."""

from __future__ import annotations

import pandas as pd

from hive_acid.demo.data import Flights2013

FOG_MILES = 1.0
FOG_MINUTES = 15
"""Delays of an hour and more in fog are corrected by this many minutes."""
OLDEST_YEAR = 1965
"""Planes built before this year leave the fleet."""
MERGERS = {"MCDONNELL DOUGLAS AIRCRAFT CO": "MCDONNELL DOUGLAS", "MCDONNELL DOUGLAS CORPORATION": "MCDONNELL DOUGLAS"}
"""Manufacturers that are now written otherwise."""
BUSY_MONTH = 7
JFK_CORRECTION = 1
"""The winner of the write conflict adds so many minutes to the delays of July's flights from JFK."""
SMALL_FIXES = ("HA", "F9", "AS")
"""Carriers whose July arrivals are corrected one by one, by one minute: small deltas for a minor compaction."""


def foggy_hours(weather: pd.DataFrame) -> pd.DataFrame:
    """Airport and hour of poor sight."""
    found = weather[weather["visib"] < FOG_MILES]
    return found[["origin", "month", "day", "hour"]].drop_duplicates()


def planes_update(data: Flights2013) -> pd.DataFrame:
    """The slowly changing dimension's new data: retired, renamed and newly seen planes, with what to do."""
    planes = data.planes
    retired = planes[planes["year"] < OLDEST_YEAR].assign(action="retired")
    renamed = planes[planes["manufacturer"].isin(list(MERGERS)) & ~planes["tailnum"].isin(retired["tailnum"])]
    renamed = renamed.assign(manufacturer=renamed["manufacturer"].map(MERGERS).astype("string"), action="renamed")
    seen = data.flights["tailnum"].dropna().drop_duplicates()
    new = pd.DataFrame({"tailnum": seen[~seen.isin(planes["tailnum"])]}).assign(action="new")
    frame = pd.concat([retired, renamed, new], ignore_index=True)
    frame["type"] = frame["type"].fillna("unknown")
    return frame.astype({"action": "string", "type": "string", "tailnum": "string"})


def flights(data: Flights2013) -> pd.DataFrame:
    """Flights after the correction of fog delays, the removal of cancelled ones and the conflict's winner."""
    frame = data.flights.copy()
    fog = frame.merge(foggy_hours(data.weather), on=["origin", "month", "day", "hour"], how="left", indicator=True)
    corrected = (fog["_merge"] == "both").to_numpy() & (frame["dep_delay"] >= 60).fillna(False).to_numpy(dtype=bool)
    frame.loc[corrected, "dep_delay"] = frame.loc[corrected, "dep_delay"] - FOG_MINUTES
    frame = frame[frame["dep_time"].notna()]
    won = (frame["month"] == BUSY_MONTH) & (frame["origin"] == "JFK")
    frame.loc[won, "dep_delay"] = frame.loc[won, "dep_delay"] + JFK_CORRECTION
    fixed = (frame["month"] == BUSY_MONTH) & frame["carrier"].isin(list(SMALL_FIXES))
    frame.loc[fixed, "arr_delay"] = frame.loc[fixed, "arr_delay"] - 1
    return frame


def planes(data: Flights2013) -> pd.DataFrame:
    """The fleet after the merge."""
    update = planes_update(data).set_index("tailnum")
    frame = data.planes[~data.planes["tailnum"].isin(update.index[update["action"] == "retired"])].copy()
    frame["manufacturer"] = frame["manufacturer"].replace(MERGERS)
    new = update[update["action"] == "new"].reset_index()[list(data.planes.columns)]
    return pd.concat([frame, new.astype(frame.dtypes.to_dict())], ignore_index=True)
