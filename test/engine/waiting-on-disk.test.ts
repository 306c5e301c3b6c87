import { expect, it } from "vitest";
import { WaitingOnDisk } from "../../runtime/engine/work/waiting-on-disk.ts";
import { type Batch, emptyBatch } from "../../runtime/journal/batch.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { spilledKey } from "../journal/store-contract.ts";
import { settle } from "../virtual-clock.ts";

it("counts few rows at once and many over some turns, each once until its rows change", async () => {
  const store = new MemoryStore();
  const { id } = await store.openView("copy", "settings", "/ConfigMap");
  const pending = { causes: [], begun: 0, forgiven: 0 };
  const put = (from: number, to: number) => {
    const spill: Batch["spill"] = Array.from({ length: to - from }, (_, at) => spilledKey(id, from + at, pending));
    return store.commit({ ...emptyBatch, spill });
  };
  const waiting = new WaitingOnDisk(store);
  expect(waiting.of("copy")).toEqual({ count: 0, oldestAt: undefined });
  await put(1, 4);
  expect(waiting.of("copy")?.count).toBe(0);
  waiting.forget("copy");
  expect(waiting.of("copy")).toEqual({ count: 3, oldestAt: expect.any(Number) });
  await put(4, 258);
  waiting.forget();
  // A query is read in parts.
  const headers = store.journal.headers.bind(store.journal);
  Object.assign(store.journal, { headers: (...asked: Parameters<typeof headers>) => headers(...asked).values() });
  expect(waiting.of("copy")).toBeUndefined();
  await put(258, 600);
  waiting.forget("copy");
  expect(waiting.of("copy")).toBeUndefined();
  for (let turn = 0; turn < 5; turn++) await settle();
  expect(waiting.of("copy")?.count).toBe(599);
});

it("asks a store again that cannot be read", async () => {
  const store = new MemoryStore();
  const waiting = new WaitingOnDisk(store);
  const { headers } = store.journal;
  store.journal.headers = () => {
    throw new Error("away");
  };
  expect(waiting.of("copy")).toBeUndefined();
  await settle();
  store.journal.headers = headers;
  expect(waiting.of("copy")?.count).toBe(0);
});
