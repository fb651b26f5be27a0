"""Where reports live and are counted: in memory, in files, drawn for an experiment. Loops are written once, here.

Streamed    reports that come a chunk at a time, as often as one likes: counting, searching, progress
InMemory    reports at hand            InFiles    files of reports, as `veil randomize` and the collector write them
Drawn       counts without reports, drawn from what people hold: for experiments
"""

from veil.engines.drawn import Drawn
from veil.engines.local import InFiles, InMemory, Streamed
from veil.engines.parts import Advance, Watch, unwatched

__all__ = ["Advance", "Drawn", "InFiles", "InMemory", "Streamed", "Watch", "unwatched"]
