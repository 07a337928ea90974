"""dagster-daemon, but for one number: it looks at backfills every 3 seconds and not every 30, so that stories are short."""

import sys

from dagster._daemon import controller
from dagster._daemon.cli import main

assert controller.DEFAULT_DAEMON_INTERVAL_SECONDS == 30
controller.DEFAULT_DAEMON_INTERVAL_SECONDS = 3

if __name__ == "__main__":
    sys.exit(main())
