"""Sources of versions: releases, tarballs, git repositories, and ranges of commits."""
