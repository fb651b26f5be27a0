"""One way from "what do I want to learn" to "here is the answer".

Study       what somebody wants to learn, and how people are asked for it; OneRound where that is one survey
Collected   the reports of one survey, wherever they are; Kept is a tally and nothing else
StudyRun    a study under way: which round to ask now, recorded and replayed after a restart
STUDIES     all kinds of studies, by name; study_from_json reads a study file or a bare task
"""

from __future__ import annotations

from veil.study.collection import Collected, Kept
from veil.study.continuations import Continuations
from veil.study.kinds import STUDIES, study_from_json
from veil.study.run import StudyRun
from veil.study.study import OneRound, Round, Rounds, Study

__all__ = [
    "STUDIES",
    "Collected",
    "Continuations",
    "Kept",
    "OneRound",
    "Round",
    "Rounds",
    "Study",
    "StudyRun",
    "study_from_json",
]
