"""Which way to ask: what each would cost and reach, before anybody is asked."""
