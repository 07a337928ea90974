"""fakesnow's server on loopback, corrected as in `snowflake_accounts`: `python -m ... PORT`."""

from __future__ import annotations

import sys

from backfill_assets_tests.snowflake_accounts import correct

if __name__ == "__main__":
    import fakesnow.server
    import uvicorn

    correct()
    fakesnow.server.shared_fs.connect(database="WAREHOUSE", schema="PUBLIC").close()
    uvicorn.run(fakesnow.server.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
