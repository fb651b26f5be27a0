"""Designs: how the people of a table are asked, and how their reports are read."""
