"""Studies: what an analyst wants to learn, how people are asked for it, and how their reports are read.

study           Study: the parameters of a question to a population; OneRound for a study that is one survey
collection      Collection: the reports of one survey, wherever they are stored; TallyCollection has a tally only
run             StudyRun: a study in progress; what it reads is recorded, and replayed after a restart
kinds           STUDIES: all kinds of studies, by name; study_from_json reads a study file or a bare task
continuations   Continuations: candidates of a search, as prefixes with their continuations
parameters      parameters of studies as JSON, and as text of a command line
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
