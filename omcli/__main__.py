"""`python -m omcli` and the `om` command."""

from omcli.cli.diagnostics import main

if __name__ == "__main__":
    main()
