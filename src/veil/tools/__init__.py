"""Small things that every room needs and that know nothing of privacy: arguments, JSON, whole files, plain numbers."""
