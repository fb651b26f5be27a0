"""What people are asked: a tree of questions about one held value, its reports and their tallies."""

from veil.survey.bit_rules import ListedBits, Parities
from veil.survey.family import EachOf, ask_from_json
from veil.survey.rule import Rule
from veil.survey.rules import AttributeSets, Levels, ListedSets
from veil.survey.survey import MOST_WAVES, People, Public, Survey
from veil.survey.tally import SurveyTally, check_waves
from veil.survey.tree import AllOf, Ask, OneOf, Question, RowIndices, as_ask

__all__ = [
    "MOST_WAVES",
    "AllOf",
    "Ask",
    "AttributeSets",
    "EachOf",
    "Levels",
    "ListedBits",
    "ListedSets",
    "OneOf",
    "Parities",
    "People",
    "Public",
    "Question",
    "RowIndices",
    "Rule",
    "Survey",
    "SurveyTally",
    "as_ask",
    "ask_from_json",
    "check_waves",
]
