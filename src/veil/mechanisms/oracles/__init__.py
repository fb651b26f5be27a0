"""Frequency oracles.

grr              GRR
unary            OUE and SUE
local_hashing    OLH and BLH
subset           SubsetSelection
hadamard         HadamardResponse
pgr              PGR
linear_hashing   LinearHashing
"""
