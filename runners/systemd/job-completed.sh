#!/bin/sh
# After a job of GitHub's runner (ACTIONS_RUNNER_HOOK_JOB_COMPLETED): docs/hardware.md.
# Written by `tidemark runner install`; a changed file is kept as it is.
exec env @{shell_environment} @{shell_tidemark} runner hook completed
