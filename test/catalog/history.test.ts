import { expect, test } from "vitest";
import type { AppliedObject, ClusterObject } from "../../runtime/catalog/api-objects.ts";
import { historyAfter, type SetHistory } from "../../runtime/catalog/deploy/history.ts";
import { readRevision, revisionConfigMap } from "../../runtime/catalog/deploy/revision.ts";
import { configMapName, keptName } from "../../runtime/catalog/names.ts";

const identity = { account: "watchfire", namespace: "watchfire", set: "team-a" };
const sha = (number: number) => number.toString(16).padStart(64, "0").split("").reverse().join("");
const entryOf = (number: number) => ({
  name: "greet",
  configMap: configMapName("watchfire", "greet", sha(number)),
  sha256: sha(number),
});
const note = { by: { account: "somebody" }, git: null, message: "", kinds: [] };
const recordOf = (number: number) =>
  revisionConfigMap(identity, note, { number, at: number, entries: [entryOf(number)], key: undefined });

const found = (name: string, bytes: number): ClusterObject => ({
  kind: "ConfigMap",
  metadata: { name, namespace: "watchfire", uid: name, resourceVersion: "1", labels: {}, annotations: {} },
  data: {},
  binaryData: { "handler.js.gz": "x".repeat(bytes) },
});

const asFound = (object: AppliedObject): ClusterObject => ({
  ...object,
  metadata: { annotations: {}, ...object.metadata, uid: object.metadata.name, resourceVersion: "1" },
});

/** A set with the revisions 1 to `count`, each of other code. All code but the last one's was copied. */
function historyOf(count: number, bytes: number): SetHistory {
  const numbers = Array.from({ length: count }, (_, at) => count - at);
  const revisions = numbers.flatMap((number) => readRevision(asFound(recordOf(number)), identity) ?? []);
  const copies = numbers.slice(1).map((number) => found(keptName("watchfire", "team-a", "greet", sha(number)), bytes));
  return {
    revisions,
    current: count,
    digest: revisions[0]?.digest,
    next: count + 1,
    copies: new Map(copies.map((copy) => [copy.metadata.name, copy])),
    leftovers: [],
  };
}

/** The changes of what is kept by another deployment. */
function after(count: number, bytes: number) {
  const superseded = new Map([[entryOf(count).configMap, found(entryOf(count).configMap, bytes)]]);
  const entries = [entryOf(count + 1)];
  return historyAfter(historyOf(count, bytes), [recordOf(count + 1)], { identity, entries, superseded });
}

const names = (objects: readonly { readonly metadata: { readonly name: string } }[]) =>
  objects.map(({ metadata }) => metadata.name).sort();

test("superseded code of a kept revision stays in a copy, and that of no revision does not", () => {
  const stranger = found("watchfire-stranger", 100);
  const own = found(entryOf(2).configMap, 100);
  const superseded = new Map([own, stranger].map((each) => [each.metadata.name, each]));
  const entries = [entryOf(3)];
  const { moved } = historyAfter(historyOf(2, 100), [recordOf(3)], { identity, entries, superseded });
  expect([...moved]).toEqual([own.metadata.name]);
});

test("the newest ten revisions are kept, and the eleventh goes with its code", () => {
  expect(names(after(9, 100).dropped)).toEqual([]);
  const { copies, dropped } = after(10, 100);
  expect(names(copies)).toEqual([keptName("watchfire", "team-a", "greet", sha(10))]);
  expect(names(dropped)).toEqual([keptName("watchfire", "team-a", "greet", sha(1)), "watchfire-revision.team-a.1"]);
});

test("revisions beyond 4 MiB of code go, the oldest first, and the new one stays whatever its size", () => {
  const { copies, dropped, records } = after(5, 1.5 * 1024 * 1024);
  expect(names(records)).toEqual(["watchfire-revision.team-a.6"]);
  expect(copies).toHaveLength(1);
  const gone = [1, 2, 3].flatMap((number) => [
    keptName("watchfire", "team-a", "greet", sha(number)),
    `watchfire-revision.team-a.${number}`,
  ]);
  expect(names(dropped)).toEqual(gone.sort());
  const large = after(2, 5 * 1024 * 1024);
  expect([names(large.records), large.copies, large.dropped.length]).toEqual([["watchfire-revision.team-a.3"], [], 3]);
});

test("a deployment without a new revision keeps the others", () => {
  const history = historyOf(3, 100);
  const { records, copies, dropped } = historyAfter(history, [], {
    identity,
    entries: [entryOf(3)],
    superseded: new Map(),
  });
  expect([records, copies, dropped]).toEqual([[], [], []]);
});
