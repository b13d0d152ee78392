"""The store: sessions, runs, samples and metrics, and statistics over them."""

from build.deferred import import_when_used

# SQLAlchemy imports both: one for servers of asyncio, one to look for plugins. Neither is used here, and
# together they are a fifth of what importing it takes.
import_when_used("asyncio", {"iscoroutine": "asyncio.coroutines"})
import_when_used("importlib.metadata")
