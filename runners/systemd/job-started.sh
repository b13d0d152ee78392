#!/bin/sh
# Before a job of GitHub's runner (ACTIONS_RUNNER_HOOK_JOB_STARTED): docs/hardware.md. Not zero fails the job.
# Written by `tidemark runner install`; a changed file is kept as it is.
exec env @{shell_environment} @{shell_tidemark} runner hook started
