"""Every parser and importer that is tried, by name."""

from tests.robustness.fuzzing import imports, own_files, program_outputs

TARGETS = {target.name: target for target in (*program_outputs.TARGETS, *own_files.TARGETS, *imports.TARGETS)}
"""Names stand in messages, and seed the sequence of a target's inputs."""
