"""N steps through huey with its SQLite storage, every write synchronised, in one process; prints seconds."""

import subprocess
import sys
import time

from huey import SqliteHuey

count, out = int(sys.argv[1]), sys.argv[2]
huey = SqliteHuey(filename=out + ".huey.db", fsync=True)


@huey.task()
def step():
    subprocess.run(["/usr/bin/touch", out], check=True)
    return True


started = time.perf_counter()
for _ in range(count):
    step()
    huey.execute(huey.dequeue())
print(time.perf_counter() - started)
