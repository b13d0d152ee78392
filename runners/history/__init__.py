"""The subcommands of `./tidemark history`: their arguments and functions."""
