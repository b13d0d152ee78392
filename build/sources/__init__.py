"""Where source comes from: releases, tarballs, git, and the commits between two."""
