"""Lines of Hive's OpenCSVSerde, taken apart as its parser (opencsv 2.3) does.

Spark's own reader of CSV is another language: to it an empty field is null, a blank line is no row, an escape stays
where it escapes nothing, and `""` within quotes is two. Lines that every parser reads alike are taken apart by a
pattern. Others are read sign by sign, in the order of opencsv's own conditions: what it makes of a quote in the middle
of a field depends on what stands beside it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

_NO_FIELDS = "array<string>"
_FIRST_PLACES = 3
"""In these opencsv takes no quote for one that is part of a text."""
_BYTES_OF_ONE = 3
"""In UTF-8, of a sign that Java counts as one."""


class Signs(NamedTuple):
    """Between the fields of a line, around a field, and before a sign of either kind in a field with quotes."""

    separator: str
    quote: str
    escape: str


CSV_SIGNS = Signs(",", '"', "\\")


class _At(NamedTuple):
    """Where the parser is: the fields that have ended, the one that it is in, and what it keeps in mind.

    `place` counts as Java does, of which the signs beyond U+FFFF are two.
    """

    fields: Column
    text: Column
    in_quotes: Column
    in_field: Column
    passes_by: Column
    place: Column

    def but(self, **changed: Column) -> Column:
        return F.struct(*(of.alias(name) for name, of in {**self._asdict(), **changed}.items()))


def fields_of(line: Column, signs: Signs) -> Column:
    """The fields of a line, an array of texts: none of an empty line, and none for quotes that do not end."""
    ended = F.concat(line, F.lit(signs.separator))
    field = _field(signs)
    simple = ended.rlike(f"^(?:{field}{re.escape(signs.separator)})*+$") & (line != "")
    taken = F.regexp_extract_all(ended, F.lit(f"({field}){re.escape(signs.separator)}"), F.lit(1))
    return F.when(simple, F.transform(taken, lambda text: _bare(text, signs))).otherwise(_sign_by_sign(line, signs))


def _field(signs: Signs) -> str:
    """The pattern of a field that every parser reads alike. It gives nothing back, and needs no stack."""
    quote, escape = re.escape(signs.quote), re.escape(signs.escape)
    within = f"[^{quote}{escape}]*+"
    quotes = f"{quote}{within}(?:(?:{quote}{quote}|{escape}[{quote}{escape}]){within})*+{quote}"
    return f"(?s:{quotes}|[^{quote}{escape}{re.escape(signs.separator)}]*+)"


def _bare(text: Column, signs: Signs) -> Column:
    """A field without its quotes and escapes."""
    quote, escape = re.escape(signs.quote), re.escape(signs.escape)
    inner = F.regexp_replace(text, f"(?s)^{quote}(.*){quote}$", "$1")
    return F.when(
        text.startswith(signs.quote), F.regexp_replace(inner, f"[{quote}{escape}]([{quote}{escape}])", "$1")
    ).otherwise(text)


def _sign_by_sign(line: Column, signs: Signs) -> Column:
    def read(of: Column) -> Column:
        begin = _At(F.array().cast(_NO_FIELDS), F.lit(""), F.lit(False), F.lit(False), F.lit(False), F.lit(0))
        places = F.sequence(F.lit(0), F.size(of) - 1)

        def step(at: Column, number: Column) -> Column:
            now = _At(*(at.getField(name) for name in _At._fields))
            return _next(now, F.get(of, number - 1), F.get(of, number), F.get(of, number + 1), signs)

        def end(at: Column) -> Column:
            return F.when(at.getField("in_quotes"), at.getField("fields")).otherwise(
                F.concat(at.getField("fields"), F.array(at.getField("text")))
            )

        return F.aggregate(places, begin.but(), step, end)

    # Computed once, however often it is used.
    apart = F.get(F.transform(F.array(F.split(line, "")), read), F.lit(0))
    return F.when(line != "", apart).otherwise(F.array().cast(_NO_FIELDS))


def _next(at: _At, before: Column, sign: Column, after: Column, signs: Signs) -> Column:
    """Where the parser is behind a sign, with those before and after it, null where there is none."""
    is_within = at.in_quotes | at.in_field
    is_last = after.isNull()
    at = at._replace(place=at.place + F.when(F.octet_length(sign) > _BYTES_OF_ONE, 2).otherwise(1))
    in_the_middle = (at.place > _FIRST_PLACES) & (before != signs.separator) & ~is_last & (after != signs.separator)
    blank = at.text.rlike(r"^\p{javaWhitespace}+$")
    with_quote = F.when(
        F.coalesce(in_the_middle, F.lit(False)),
        F.when(blank, F.lit("")).otherwise(F.concat(at.text, sign)),
    ).otherwise(at.text)
    taken = F.concat(at.text, after)
    return (
        F.when(at.passes_by, at.but(passes_by=F.lit(False)))
        .when(
            sign == signs.escape,
            F.when(
                is_within & F.coalesce(after.isin(signs.quote, signs.escape), F.lit(False)),
                at.but(text=taken, passes_by=F.lit(True)),
            ).otherwise(at.but()),
        )
        .when(
            sign == signs.quote,
            F.when(
                is_within & F.coalesce(after == signs.quote, F.lit(False)),
                at.but(text=taken, passes_by=F.lit(True), in_field=~at.in_field),
            ).otherwise(at.but(text=with_quote, in_quotes=~at.in_quotes, in_field=~at.in_field)),
        )
        .when(
            (sign == signs.separator) & ~at.in_quotes,
            at.but(fields=F.concat(at.fields, F.array(at.text)), text=F.lit(""), in_field=F.lit(False)),
        )
        .otherwise(at.but(text=F.concat(at.text, sign), in_field=F.lit(True)))
    )
