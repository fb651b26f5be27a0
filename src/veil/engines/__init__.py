"""Places where reports are stored and counted: memory, files, Spark, or a simulation of the counts.

ReportStream        reports that come in chunks, as often as they are needed: counting, searching, progress
MemoryCollection    reports in memory
FileCollection      files of reports, as `veil randomize` and the collector write them
DrawnCollection     counts without reports, drawn from people's values: for experiments
"""

from veil.engines.counting import Advance, Watch, unwatched
from veil.engines.drawn import DrawnCollection
from veil.engines.local import FileCollection, MemoryCollection, ReportStream

__all__ = ["Advance", "DrawnCollection", "FileCollection", "MemoryCollection", "ReportStream", "Watch", "unwatched"]
