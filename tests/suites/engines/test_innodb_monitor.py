"""What is read of InnoDB's monitor, as MySQL and MariaDB print it."""

import pytest

from suites.innodb.monitor import Monitor, parsed

MYSQL = """
---
LOG
---
Log sequence number          31524097
Log buffer assigned up to    31524097
Log flushed up to            31524097
Last checkpoint at           31091969
----------------------
BUFFER POOL AND MEMORY
----------------------
Total large memory allocated 0
Dictionary memory allocated 658429
Buffer pool size   8192
Free buffers       7119
Database pages     1069
----------------------
INDIVIDUAL BUFFER POOL INFO
----------------------
---BUFFER POOL 0
Buffer pool size   1024
Free buffers       900
"""

MARIADB = """
---
LOG
---
Log sequence number 52480
Log flushed up to   52480
Pages flushed up to 46310
Last checkpoint at  46298
----------------------
BUFFER POOL AND MEMORY
----------------------
Total large memory allocated 25165824
Dictionary memory allocated 856056
Buffer pool size   1536
Free buffers       1205
Database pages     331
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [(MYSQL, Monitor(31524097, 31091969, 8192, 1073)), (MARIADB, Monitor(52480, 46298, 1536, 331))],
)
def test_log_and_pool_are_read(text: str, said: Monitor) -> None:
    assert parsed(text) == said
