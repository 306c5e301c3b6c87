import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Clock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Informers } from "../../runtime/informer/informers.ts";
import { NamespaceInformer } from "../../runtime/informer/namespace-informer.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { VirtualClock } from "../virtual-clock.ts";

const names = Array.from({ length: 2000 }, (_, index) => `team-${index}`);

function change(type: Change["type"], name: string): Change {
  const meta = { name, namespace: "", uid: `uid-${name}`, resourceVersion: resourceVersion("5") };
  return { type, meta, body: Buffer.from(JSON.stringify({ metadata: { name } })), receivedAt: 0 };
}

/** The test acts as its source; each namespace that enters or leaves takes 1 ms. */
function scope(concerns?: (namespace: string) => boolean) {
  let spentMs = 0;
  const log: string[] = [];
  const note = (line: string) => {
    spentMs++;
    log.push(line);
  };
  const clock: Clock = Object.assign(new VirtualClock(), { monotonic: () => spentMs });
  const watches = { subscribe: () => ({ close: async () => {} }) } as unknown as Informers;
  const made: NamespaceInformer = new NamespaceInformer({
    watches,
    clock,
    id: "scope",
    labelSelector: "team",
    ...(concerns && { concerns }),
    believes: () => true,
    begin: (all) => note(`begin ${all.length}`),
    enter: (name) => note(`enter ${name}`),
    leave: (name) => note(`leave ${name}, ${made.namespaces.length} stay`),
    ready: () => note("ready"),
  });
  const list = (listed: readonly string[]) => {
    const receiver = made.list();
    for (const name of listed) receiver.item(change("Added", name));
    return receiver.end(resourceVersion("9"));
  };
  /** The maximum number in one turn of the event loop, until nothing is pending. */
  const mostPerTurn = async () => {
    let [most, before] = [0, 0];
    do {
      most = Math.max(most, log.length - before);
      before = log.length;
      await nextTurn();
    } while (made.congested);
    return Math.max(most, log.length - before);
  };
  return { made, log, list, mostPerTurn };
}

test("all namespaces of the first list are named before one enters, and they enter over many turns of the event loop", async () => {
  const { made, log, list, mostPerTurn } = scope();
  expect(list(names)).toBe("counted");
  expect(await mostPerTurn()).toBeLessThanOrEqual(10);
  expect(log).toEqual(["begin 2000", ...names.map((name) => `enter ${name}`), "ready"]);
  expect(made.namespaces).toEqual(names);
});

test("namespaces that go at once leave over many turns, and what comes after them waits", async () => {
  const { made, log, list, mostPerTurn } = scope();
  list(names);
  await mostPerTurn();
  log.length = 0;
  for (const name of names.slice(0, 50)) made.change(change("Deleted", name));
  made.change(change("Added", "team-7"));
  expect(made.congested).toBeDefined();
  expect(await mostPerTurn()).toBeLessThanOrEqual(10);
  const leaving = names.slice(0, 50).map((name, index) => `leave ${name}, ${1999 - index} stay`);
  expect(log).toEqual([...leaving, "enter team-7"]);
});

test("a scope that is closed while namespaces enter lets none in any more", async () => {
  const { made, log, list } = scope();
  list(names);
  await made.close();
  const before = log.length;
  await nextTurn();
  expect([log.length, made.congested]).toEqual([before, undefined]);
  expect(before).toBeLessThan(20);
});

test("namespaces that are another's to follow neither enter nor leave", async () => {
  const { made, log, list, mostPerTurn } = scope((name) => name.endsWith("7"));
  expect(list(["team-6", "team-7"])).toBe("counted");
  await mostPerTurn();
  for (const name of ["team-16", "team-17"]) made.change(change("Added", name));
  for (const name of ["team-6", "team-7"]) made.change(change("Deleted", name));
  await mostPerTurn();
  expect(log).toEqual(["begin 1", "enter team-7", "ready", "enter team-17", "leave team-7, 1 stay"]);
  expect(made.namespaces).toEqual(["team-17"]);
});
