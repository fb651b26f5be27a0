"""General helpers, independent of privacy.

filesystem       atomic writes, private files, and scratch folders
json_documents   JSON parsed within limits, canonical JSON, and tables of kinds
limits           limits on the memory and time of queries, and on open files
messages         escaped text, suggestions for unknown names, and how to install an extra
numbers          checks of numeric arguments, normal quantiles, and rounding of shares
processes        a mark and a lock that belong to one process
"""
