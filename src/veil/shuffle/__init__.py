"""Shuffling between processes on several machines, the parties, with limited trust between them.

One server and several shufflers share a `CollectionPlan`. Devices leave shares or onions with the shufflers. The server
closes the collection, has the shufflers run a protocol, stores the outcome and acknowledges it; then the shufflers
delete what they stored. All connections use TLS 1.3 with certificates at both ends. docs/peos.md and
docs/sequential-shuffle.md describe the protocols; `veil.accounting` computes the guarantees of shuffled reports.

    plan, settings     the plan that all parties share; the settings file of one party
    collection         a study collected between parties: the folder of a collection, and devices
    submissions        shares: a device's outbox, and a shuffler's store
    shuffler           the process of a shuffler
    coordinator        the server's side of a collection
    protocol           the interface of a protocol
    peos, sequential   the two protocols: PEOS, and the sequential shuffle
    rehearsal          a whole collection on one machine
    transport          certificates, frames, connections
"""
