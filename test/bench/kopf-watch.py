# kopf's low-level handler of Pods, which does nothing, or (`paced`) notes when it began. Prints a line of JSON once it has
# been told of so many events.
import collections
import json
import os
import time

import kopf

TOTAL, PACED = int(os.environ["BENCH_EVENTS"]), os.environ["BENCH_MODE"] == "paced"
delays = collections.Counter()
seen = 0


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False


@kopf.on.event("v1", "pods")
async def told(annotations, **_):
    global seen
    if PACED:
        delays[max(0, int(time.time() * 1000) - int(annotations["bench/sent"]))] += 1
    seen += 1
    if seen == TOTAL:
        print(json.dumps({"delays": delays}, separators=(",", ":")), flush=True)
