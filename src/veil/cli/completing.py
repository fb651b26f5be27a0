"""What a shell completes beside commands, options and files: names of which there are few, with what they mean.

Nothing is imported before somebody presses TAB where such a name stands.
"""

from __future__ import annotations

__all__ = ["experiments", "goals", "methods", "scopes"]

Names = list[tuple[str, str]]


def goals() -> Names:
    """The goals and kinds of studies that `veil plan` takes."""
    from veil.planning import GOALS, goal_of
    from veil.study import STUDIES

    return [(kind, goal_of(kind).summary) for kind in (*GOALS, *(kind for kind in STUDIES if kind not in GOALS))]


def methods() -> Names:
    """The methods of post-processing."""
    from veil.post import METHODS

    return [(name, method.good_for) for name, method in METHODS.items()]


def experiments() -> Names:
    """What `veil reproduce` runs."""
    from veil_papers import EXPERIMENTS

    return [(name, experiment.paper) for name, experiment in EXPERIMENTS.items()]


def scopes() -> Names:
    """What a token of the collector may be allowed to do."""
    from veil.collector.access import SCOPES

    return list(SCOPES.items())
