"""The clients: programs whose agents use the memory, such as Claude Code. Each runs `om hook` at its events."""

CLIENTS = ("claude-code", "codex", "pi", "opencode", "gemini", "cursor")
