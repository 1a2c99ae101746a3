"""What a sentence is: words that tell decisions, instructions, corrections, findings, results and blockers apart."""

from __future__ import annotations

from omcli.observers.rules.cues.agents import (
    agent_type,
    is_guess,
    is_narration,
    is_progress,
    is_talk,
    offers,
    opens_list_of_next,
)
from omcli.observers.rules.cues.chat import is_reaction, told_importance
from omcli.observers.rules.cues.courtesies import agrees, declines, is_pleasantry
from omcli.observers.rules.cues.neighbours import leans, points
from omcli.observers.rules.cues.people import lasts, user_importance, user_type
from omcli.observers.rules.cues.questions import asks, asks_nothing, begins_question
from omcli.observers.rules.cues.standing import is_standing
from omcli.observers.rules.cues.statements import asserts, states, wishes

__all__ = [
    "agent_type", "agrees", "asks", "asks_nothing", "asserts", "begins_question", "declines", "is_guess",
    "is_narration", "is_pleasantry", "is_progress", "is_reaction", "is_standing", "is_talk", "lasts", "leans", "offers",
    "opens_list_of_next", "points", "states", "told_importance", "user_importance", "user_type", "wishes",
]  # fmt: skip
