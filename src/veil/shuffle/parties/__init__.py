"""Shuffling between parties: processes of their own that trust each other only as far as a protocol says.

One server and several shufflers, each on its own machine, share a `Plan`. People's devices leave something with the
shufflers; the server closes the collection, has them run a protocol, keeps what comes out and acknowledges it, upon
which they forget what they held. Everything travels over TLS 1.3 with certificates on both ends.

    plan          what all parties have to agree on: one file, the same everywhere
    settings      one party's own file: where it listens, its certificate, its folder
    certificates  a test authority; contexts for TLS
    channel       frames between two parties, with signs of life
    dialing       connecting, and agreeing on the plan first
    listening     accepting connections, a limited number of each kind
    kept          what people left with a shuffler, on disk until it is acknowledged
    listing       lists of submissions as bytes
    protocol      what a protocol fills in: `veil.shuffle.peos` and `veil.shuffle.sequential`
    attempt       one run of a protocol, as a party sees it
    shuffler      the process of a shuffler
    coordinator   the server's side of a collection
    device        leaving a share with every shuffler
"""
