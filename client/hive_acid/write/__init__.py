"""The one way in which rows become a table's: by Spark, by LOAD DATA, by a stream. Nothing here knows of Spark."""
