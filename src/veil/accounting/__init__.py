"""Central guarantees of shuffled reports, and the oracles with the least error for a given guarantee.

A shuffler between people and collector mixes the reports, so that nobody knows the sender of a report. An observer of
the mixed reports learns much less: the central guarantee towards such an observer is far stronger than the local one,
which still holds if the shuffler tells. Thesis chapter 9; docs/shuffle.md. `veil.shuffle` runs shuffles.

    amplify, largest_local    the central guarantee (`ShuffleGuarantee`, by a `Method`) of a local one, and its inverse
    design, designs           the oracles for a central guarantee (`ShuffleDesign`)
    design_peos, designs_peos the oracles and numbers of fakes for three guarantees with fake reports (`PeosDesign`)
    against_server, against_server_and_users, variance_with_fakes, least_share    guarantees and errors with fakes
    Shuffler                  the shuffler that a study counts on: numbers of people and fakes, delta
    Blanket, blanket_of       the privacy blanket of a mechanism
    delta_of, Bracket, Fakes  the accountant: certified bounds on delta
    bounds, Bound             bounds in closed form
    AUE, rap, rap_removal, random_reports, solh_buckets, Laplace, UniformGuess    rivals and baselines
"""

from veil.accounting import bounds
from veil.accounting.amplification import Method, ShuffleGuarantee, amplify, largest_local
from veil.accounting.blanket import Blanket, blanket_of
from veil.accounting.blanket_delta import Bracket, Fakes, delta_of
from veil.accounting.designs import Bound, ShuffleDesign, design, designs
from veil.accounting.fakes import Shuffler, against_server, against_server_and_users, least_share, variance_with_fakes
from veil.accounting.peos_designs import PeosDesign, design_peos, designs_peos
from veil.accounting.rivals import AUE, Laplace, UniformGuess, random_reports, rap, rap_removal, solh_buckets

__all__ = [
    "AUE",
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
    "UniformGuess",
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
