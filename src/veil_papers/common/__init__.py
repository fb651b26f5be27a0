"""What all experiments share: exhibits, the sweep and claims about it, people who answer, pictures and pages."""
