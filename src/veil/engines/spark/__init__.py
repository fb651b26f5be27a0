"""Apache Spark as the place where reports are stored and counted (extra `veil-ldp[spark]`).

from veil.engines.spark import SparkCollection

study.read(SparkCollection.files(spark, study.survey, ["s3://bucket/reports/"]))

SparkCollection    reports in files that every worker can open, or in a table of Spark's
open_session       a session for an address, set up for veil
"""

from veil.engines.spark.collected import SparkCollection
from veil.engines.spark.session import open_session

__all__ = ["SparkCollection", "open_session"]
