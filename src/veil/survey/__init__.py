"""Surveys: a tree of questions about one held value, the public columns beside its reports, and their tallies.

survey             Survey, Public and People                  tally      SurveyTally
tree               Question, OneOf and AllOf                  family     EachOf, and reading a tree from JSON
rule, rules        Rule, AttributeSets, ListedSets, Levels    bit_rules  ListedBits and Parities
"""

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
