"""Surveys and what is learnt from them.

- `catalogue` has drafts, published documents and changes of state; `rounds` studies of several rounds.
- `collection` reads stored reports and keeps their tallies; `answers` answers analysts; `exporting` writes reports as
  Parquet.
- `assessment` writes templates of a data protection impact assessment.
"""
