"""Which way to ask: what each would cost and reach, before anybody is asked.

    plan(kind, Wishes(...))      the best way for a goal, or a kind of study with its parameters, as a Choice
    veil.choose(domain, eps)     the best oracle for a histogram
    epsilon.at_epsilon(study, e) the same study with another epsilon

Not here: the command `veil plan`, which reads the wishes and shows the choice.
"""
