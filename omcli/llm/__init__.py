"""Language models as the core sees them: prompts, replies and their schema."""
