"""What people are asked: a tree of questions about one held value, its reports and their tallies."""

from veil.survey.survey import Public, Survey
from veil.survey.tally import SurveyTally
from veil.survey.tree import AllOf, Ask, OneOf, Question, Rows, as_ask, ask_from_json

__all__ = ["AllOf", "Ask", "OneOf", "Public", "Question", "Rows", "Survey", "SurveyTally", "as_ask", "ask_from_json"]
