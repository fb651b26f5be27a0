"""Speed and memory against peers and limits, as ratios measured in one run: `python -m bench` (or `make bench`)."""
