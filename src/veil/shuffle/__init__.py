"""Shuffling between parties: processes on several machines that trust each other only as far as a protocol states.

One server and several shufflers share a `CollectionPlan`. Devices leave shares or onions with the shufflers. The server
closes the collection, has the shufflers run a protocol, stores the outcome and acknowledges it; then the shufflers
delete what they stored. All connections use TLS 1.3 with certificates on both ends.

    plan, settings     what all parties agree on; the file of one party
    collection         a study collected between parties: settings from a study file, reports from the outcome
    submissions        shares from devices: sending them, and keeping them on disk until they are acknowledged
    shuffler           the process of a shuffler
    coordinator        the server's side of a collection
    protocol           what a protocol defines; its two implementations are `peos` and `sequential`
    rehearsal          all parties on one machine
    transport          certificates, frames, connections

The guarantee of shuffled reports is in `veil.accounting`.
"""
