import { expect, test } from "vitest";
import { WatchfireError } from "../../../runtime/base/errors.ts";
import { anyShard } from "../../../runtime/control/redeliver/jobs.ts";
import type { RedeliveryCounts } from "../../../runtime/control/redeliver/redeliverer.ts";

const refuses = (code: "WF_RUNTIME_NO_RUN" | "WF_RUNTIME_NOT_REDELIVERED", what: string) => () =>
  Promise.reject(new WatchfireError(code, { what, actual: "u/12/Added" }));
const unaware = refuses("WF_RUNTIME_NO_RUN", "no run has this ID");
const changed = refuses("WF_RUNTIME_NOT_REDELIVERED", "the object has changed since");
const tells = async (): Promise<RedeliveryCounts> => new Map([["queued", 1]]);
const ask = (shards: readonly (() => Promise<RedeliveryCounts>)[], elsewhere?: string) =>
  anyShard(shards, (shard) => shard(), elsewhere);

test("the shard that has what is asked for tells of it, whatever the others say", async () => {
  expect(await ask([unaware, tells, changed])).toEqual({ queued: 1, skipped: [] });
});

test("where none can, the one that knows of the run says why", async () => {
  await expect(ask([unaware, changed])).rejects.toThrow(
    "WF_RUNTIME_NOT_REDELIVERED: the object has changed since, got",
  );
  await expect(ask([unaware, unaware])).rejects.toThrow("WF_RUNTIME_NO_RUN: no run has this ID, got");
});

test("a refusal names the replica that has the other shards", async () => {
  const refusal = 'WF_RUNTIME_NO_RUN: no run has this ID; this applies only here: slot 3 is with b, got "u/12/Added"';
  await expect(ask([unaware], "slot 3 is with b")).rejects.toThrow(refusal);
});
