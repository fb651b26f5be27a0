"""The compiled loops. Nothing outside this package imports numba.

Kernels take plain arrays and decided draws, never a Source. They release the GIL, so `threads.add_up` spreads people
over cores; their sums are integers, so the result does not depend on how. Compiled code is cached beside the source, or
in the user's cache folder where that is not writable (numba's own rule; NUMBA_CACHE_DIR overrides both).
"""
