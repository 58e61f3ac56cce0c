"""The verbs of the command line, one module each with `run(arguments) -> exit code`."""
