"""Transforms that tests name as 'transforms:<function>'."""

from __future__ import annotations


def nothing(df):
    return df.filter("false")


def first_three(df):
    return df.limit(3)


def per_shard(df):
    return df.groupBy("shard").count()


def with_itself(df):
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    return df.join(df.select(F.col("number").alias("twin")), F.col("number") == F.col("twin")).drop("twin")


def acts(df):
    df.count()
    return df


def window_start(df):
    return df.withColumn("Window_Start", df.shard)


def fails_in_python(df):
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    def explode(value):
        raise RuntimeError("a user's function fails")

    return df.withColumn("value", F.udf(explode, "string")("shard"))
