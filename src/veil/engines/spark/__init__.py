"""Apache Spark as the place where reports live and are counted (extra `veil-ldp[spark]`).

    from veil.engines.spark import SparkCollected

    study.read(SparkCollected.files(spark, study.survey, ["s3://bucket/reports/"]))

SparkCollected    reports in files that every worker can open, or in a table of Spark's
open_session      a session for an address, set up for veil
"""

from veil.engines.spark.collected import SparkCollected
from veil.engines.spark.session import open_session

__all__ = ["SparkCollected", "open_session"]
