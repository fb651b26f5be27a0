"""The central guarantee of shuffled reports, and which oracle to choose where there is a shuffler.

Between people and collector stands a shuffler that mixes reports, so that nobody knows who sent which. The same reports
then keep a far stronger promise towards whoever sees only the mixed ones. The local promise stays what is left if the
shuffler tells. Thesis chapter 9; docs/shuffle.md.
"""

from veil.accounting import bounds
from veil.accounting.accountant import Bracket, Fakes, delta_of
from veil.accounting.amplification import Method, ShuffleGuarantee, amplify, largest_local
from veil.accounting.blanket import Blanket, blanket_of
from veil.accounting.designs import Bound, ShuffleDesign, design, designs
from veil.accounting.fakes import Shuffler, against_server, against_server_and_users, least_share, variance_with_fakes
from veil.accounting.peos_designs import PeosDesign, design_peos, designs_peos
from veil.accounting.rivals import AUE, Base, Laplace, random_reports, rap, rap_removal, solh_buckets

__all__ = [
    "AUE",
    "Base",
    "Blanket",
    "Bound",
    "Bracket",
    "Fakes",
    "Laplace",
    "Method",
    "PeosDesign",
    "ShuffleDesign",
    "ShuffleGuarantee",
    "Shuffler",
    "against_server",
    "against_server_and_users",
    "amplify",
    "blanket_of",
    "bounds",
    "delta_of",
    "design",
    "design_peos",
    "designs",
    "designs_peos",
    "largest_local",
    "least_share",
    "random_reports",
    "rap",
    "rap_removal",
    "solh_buckets",
    "variance_with_fakes",
]
