"""One person's device: it checks the privacy guarantee, pays for it and randomizes. Nothing here imports the collector.

Client          answers surveys for one person; `Client.open` gets one from a collector and sends the answers there
Ledger          what the person grants and has spent, in a file that fails closed
OnlineClient    what `Client.open` returns: fetches, verifies, pays, sends with retries, keeps what was not delivered
Receipt         the state of an answer that was sent
RoundClient     answers one round of a study of several rounds, and no other round
verified        the survey in a published document, after its signature and times are checked
verified_round  the current round of a study and the people it asks, after the signatures are checked
"""

from veil.device.client import Client, RoundClient, verified_round
from veil.device.ledger import Ledger
from veil.device.online import OnlineClient, Receipt
from veil.device.verification import verified

__all__ = ["Client", "Ledger", "OnlineClient", "Receipt", "RoundClient", "verified", "verified_round"]
