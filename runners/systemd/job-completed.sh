#!/bin/sh
# After a job of GitHub's runner (ACTIONS_RUNNER_HOOK_JOB_COMPLETED): docs/hardware.md.
# Written by `tidemark runner install`; a changed file is kept as it is.
# TIDEMARK_VENV is for jobs: this checkout has an environment of its own.
exec env --unset=TIDEMARK_VENV @{shell_environment} @{shell_tidemark} runner hook completed
