"""Transforms that tests name as 'transforms:<function>'."""

from __future__ import annotations

import os


def nothing(df):
    return df.filter("false")


def first_three(df):
    return df.limit(3)


def without_shard(df):
    return df.drop("shard")


def numbers_as_text(df):
    return df.selectExpr("value", "publish_time", "shard", "string(number) as number")


def with_a_column_more(df):
    return df.selectExpr("*", "number * 2 as twice")


def per_shard(df):
    return df.groupBy("shard").count()


def with_itself(df):
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    return df.join(df.select(F.col("number").alias("twin")), F.col("number") == F.col("twin")).drop("twin")


def acts(df):
    df.count()
    return df


def writes(df):
    """Over a table that exists."""
    df.write.mode("overwrite").parquet(os.environ["TEST_TABLE"])
    return df


def wraps_an_action(df):
    try:
        return df.limit(df.count())
    except Exception as error:
        raise RuntimeError("the user's own words") from error


def caches(df):
    return df.cache()


def with_context(df, context):
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    told = (str(context.window), context.reader, context.attempt, context.plan.fingerprint)
    return df.select("number", F.lit("|".join(told)).alias("told"))


def with_an_option(df, factor=2):
    return df.selectExpr(f"number * {factor} as number")


def raises(df):
    raise KeyError("no such\nthing")


def returns_nothing(df):
    df.select("number")


def unknown_column(df):
    return df.select("colour")


def one_name_twice(df):
    return df.selectExpr("number", "shard", "number + 1 as number")


def one_name_in_two_cases(df):
    return df.selectExpr("number", "shard as Number")


def one_name_twice_inside(df):
    return df.selectExpr("number", "array(named_struct('a', 1, 'b', named_struct('c', 1, 'C', 2))) as parts")


def no_columns(df):
    return df.drop(*df.columns)


def unknown_to_parquet(df):
    return df.selectExpr("make_interval(1, 1) as pause")


def in_another_zone(df):
    df.sparkSession.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    df.sparkSession.conf.set("spark.sql.shuffle.partitions", "7")
    return local_times(df)


def in_another_zone_at_minute_one(df, context):
    return in_another_zone(df) if context.window.start.minute == 1 else local_times(df)


def local_times(df):
    """The hour as the session's zone tells it."""
    return df.selectExpr("number", "hour(timestamp_seconds(0)) as hour")


def bad_value(df):
    return df.selectExpr("cast('x' || shard as int) as number")


def fails_on_minute_two(df, context):
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    def explode(value):
        raise RuntimeError(f"a user's function fails on {value}")

    if context.window.start.minute != 2:
        return df
    return df.withColumn("value", F.udf(explode, "string")("shard").cast("binary"))


def window_start(df):
    return df.withColumn("Window_Start", df.shard)


def fails_in_python(df):
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    def explode(value):
        raise RuntimeError("a user's function fails")

    return df.withColumn("value", F.udf(explode, "string")("shard"))


def needs_a_file_of_the_machine(df):
    """A module that only Spark's settings of the machine send."""

    def passed_on(batches):
        import of_the_machine

        assert of_the_machine.FACTOR == 3
        yield from batches

    return df.mapInArrow(passed_on, df.schema)


def settings(df):
    """What Spark was told, in every row."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    conf = df.sparkSession.conf
    told = {name: conf.get(name, "none") for name in SETTINGS}
    return df.select(*(F.lit(value).alias(name.replace(".", "_")) for name, value in told.items()))


SETTINGS = (
    "spark.driver.memory",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.sql.shuffle.partitions",
    "spark.app.name",
    "spark.files",
)


def doubled(df):
    return df.selectExpr("n", "shard", "n * 2 AS twice")


def awkward_names(df):
    return df.selectExpr("number as `a.b`", "shard as `c``d`", "shard as `Größe`", "number as `e f`")


def held(df):
    """Its tasks wait while the file exists that `TEST_HOLD` names where the driver runs, and say so by another file."""
    hold = os.environ.get("TEST_HOLD", "")

    def passed_on(batches):
        import time
        from pathlib import Path

        for batch in batches:
            while hold and Path(hold).exists():
                Path(f"{hold}.reached").touch()
                time.sleep(0.05)
            yield batch

    return df.mapInArrow(passed_on, df.schema)
