"""SQL over data nobody may see."""
