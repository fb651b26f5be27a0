"""The measurements behind veil's claims. `make test` runs quick versions of them, `make acceptance` the full ones."""
