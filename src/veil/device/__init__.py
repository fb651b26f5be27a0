"""One person's device: it checks the promise, pays for it and randomizes; nothing here knows the collector.

Client      answers surveys for one person
Ledger      what the person grants and has spent, in a file that fails closed
RoundClient answers one round of a study of several rounds, and no second one
verified    the survey in a published document, once its signature and times are checked
"""

from veil.device.client import Client
from veil.device.ledger import Ledger
from veil.device.rounds import RoundClient, verified_round
from veil.device.verification import verified

__all__ = ["Client", "Ledger", "RoundClient", "verified", "verified_round"]
