"""Studies: what an analyst wants to learn, how people are asked for it, and how their reports are read.

Study         parameters of a question to a population; OneRound for a study that is one survey
Collection    the reports of one survey, wherever they are stored; TallyCollection has their tally only
StudyRun      a study in progress: the round to ask now; everything it read is recorded and replayed after a restart
STUDIES       all kinds of studies, by name; study_from_json reads a study file or a bare task
"""

from __future__ import annotations

from veil.study.collection import Collection, TallyCollection
from veil.study.continuations import Continuations
from veil.study.kinds import STUDIES, study_from_json
from veil.study.run import StudyRun
from veil.study.study import OneRound, Round, Rounds, Study

__all__ = [
    "STUDIES",
    "Collection",
    "Continuations",
    "OneRound",
    "Round",
    "Rounds",
    "Study",
    "StudyRun",
    "TallyCollection",
    "study_from_json",
]
