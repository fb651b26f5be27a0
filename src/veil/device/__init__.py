"""One person's device: it checks the promise, pays for it and randomizes; nothing here knows the collector.

Client      answers surveys for one person
Ledger      what the person grants and has spent, in a file that fails closed
verified    the survey in a published document, once its signature and times are checked
"""

from veil.device.client import Client
from veil.device.ledger import Ledger
from veil.device.verification import verified

__all__ = ["Client", "Ledger", "verified"]
