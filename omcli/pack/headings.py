"""What the working-memory block and its sections are called."""

TITLE = "## Working Memory"
MAIN = ("Current Task", "Modified Files", "Recent Errors", "Key Decisions")
"""The sections that come first, in this order."""
HEADINGS = (*MAIN, "Blockers", "Open Questions", "Notes", "Outcomes", "Commands", "Delegated Tasks", "Searches")
"""All sections, in their order."""
