"""README and docs: their links lead somewhere, and their code blocks run."""
