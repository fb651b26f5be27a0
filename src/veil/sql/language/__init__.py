"""From the text of a query to a Query.

statements       text, syntax tree and positions of errors
parsing          clauses of SELECT; `parse` makes the Query
scalars          columns, constants and public expressions
conditions       WHERE
expressions      aggregates, SELECT, HAVING and ORDER BY
query            the Query and its parts, as frozen data
dimensions       comparisons with a private dimension as ranges of codes; its buckets
regions          algebra of conditions, and the disjoint boxes that a condition selects
"""
