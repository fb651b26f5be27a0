"""The databases that keep surveys and reports.

- `base` is the contract of a store and its records; `sqlite` and `postgres` implement it.
- `sql` has the statements that both share, `blocks` how reports are stored, `block_reading` how they are read, and
  `seen` how repeated ids are found.
- `schema` has the tables and migrations, and `timing` pauses and deadlines.
- `backup` copies a database to a file and back; `checking` looks for damage.
"""
