"""Results for the terminal, notebooks, files and pictures.

layout     any result as texts in rows and columns, and as HTML
terminal   any result in a terminal
files      any result as CSV, Parquet, Arrow or JSON; `save` and `load`
plot       pictures, with matplotlib
"""
