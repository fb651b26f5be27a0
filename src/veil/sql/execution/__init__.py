"""Execution of queries: passes over the reports of a table, and what follows from their sums.

engine           the answer to a query; true values, for simulations
explaining       EXPLAIN: the plan of a query with predicted errors
rows             the rows of a table, counted by class and scanned
passes           the SQL of these passes, and weights as exact integers
accumulators     what a scan adds up for each row of the answer
sums             exact sums, totals with covariances
duckdb           DuckDB, locked, over the rows of one table
cluster          queries over reports on a cluster
costs            memory and time of a query, and its refusal beyond the limits
"""
