"""The shuffler model: what a shuffle of everybody's reports is worth, and how to ask when there is one.

Between people and collector stands a shuffler that mixes reports, so that nobody knows who sent which. The same reports
then keep a far stronger promise towards whoever sees only the mixed ones. The local promise stays what is left if the
shuffler tells. Thesis chapter 9; docs/shuffle.md.
"""

from veil.shuffle import bounds
from veil.shuffle.accountant import Bracket, Fakes, delta_of
from veil.shuffle.amplification import Amplified, Method, amplify, largest_local
from veil.shuffle.aue import AUE
from veil.shuffle.blanket import Blanket, blanket_of
from veil.shuffle.designing import Bound, ShuffleDesign, design, designs
from veil.shuffle.fakes import against_server, against_server_and_users, least_share, variance_with_fakes
from veil.shuffle.peos_design import PeosDesign, design_peos, designs_peos
from veil.shuffle.rivals import Base, Laplace, random_reports, rap, rap_removal, solh_buckets
from veil.shuffle.shuffler import Shuffler

__all__ = [
    "AUE",
    "Amplified",
    "Base",
    "Blanket",
    "Bound",
    "Bracket",
    "Fakes",
    "Laplace",
    "Method",
    "PeosDesign",
    "ShuffleDesign",
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
