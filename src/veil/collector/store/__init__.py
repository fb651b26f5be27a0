"""The databases that keep surveys and reports."""
