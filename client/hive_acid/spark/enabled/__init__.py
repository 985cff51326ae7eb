"""A Spark session in which the metastore's tables are there by Spark's own words; `enabling` joins the two."""
