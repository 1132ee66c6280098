"""N steps of one DBOS workflow over SQLite; prints seconds."""

import subprocess
import sys
import time

from dbos import DBOS, DBOSConfig

count, out = int(sys.argv[1]), sys.argv[2]
config: DBOSConfig = {
    "name": "bench",
    "system_database_url": f"sqlite:///{out}.dbos.db",
    "log_level": "ERROR",
    "run_admin_server": False,
}
DBOS(config=config)


@DBOS.step()
def step():
    subprocess.run(["/usr/bin/touch", out], check=True)


@DBOS.workflow()
def night():
    for _ in range(count):
        step()


DBOS.launch()
started = time.perf_counter()
night()
print(time.perf_counter() - started)
DBOS.destroy()
