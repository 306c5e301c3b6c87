import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { Redactor } from "../../runtime/access/redactor.ts";
import { Pauses } from "../../runtime/control/pauses.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import { Assignees } from "../../runtime/host/components.ts";
import { LiveFunction } from "../../runtime/host/live-function.ts";
import { WatchRoom } from "../../runtime/host/watch-room.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { ownObjects } from "../access/api-server.ts";
import { manifest, quiet, ScriptedRunner, trigger } from "../engine/fixture.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { bookmark, configMap, type Exchange, event, type Stream, statusObject } from "./api-server.ts";
import { FaultFixture, isProbe } from "./fixture.ts";

const isInitial = (path: string) => (each: Exchange) =>
  each.path === path && each.query.has("sendInitialEvents") && !isProbe(each);
const isNamespaces = isInitial("/api/v1/namespaces");
const isObjects = isInitial("/api/v1/namespaces/team-a/configmaps");

const teamA = event("ADDED", {
  kind: "Namespace",
  apiVersion: "v1",
  metadata: { name: "team-a", uid: "uid-team-a", resourceVersion: "3" },
});
/** The end of a list of namespaces. */
const listed = (resourceVersion: number) => bookmark(resourceVersion, true, "Namespace");
const objects = Array.from({ length: 150 }, (_, index) => event("ADDED", configMap(`n${index}`, 5 + index)));

/** A function that follows the namespaces of a label, on a scripted server, a virtual clock and a disk that outlives it. */
class Follower {
  readonly fixture: FaultFixture;
  readonly runner = new ScriptedRunner();
  private readonly disk = new MemoryDisk();

  private constructor(fixture: FaultFixture) {
    this.fixture = fixture;
    // Requests that a test does not answer stay open.
    fixture.server.script(
      ({ path }) => path.startsWith("/api/v1/namespaces"),
      () => {},
    );
    fixture.server.script(isProbe, (each) => each.status(422, "Invalid"));
  }

  static async start(): Promise<Follower> {
    const fixture = await FaultFixture.start();
    onTestFinished(() => fixture[Symbol.asyncDispose]());
    return new Follower(fixture);
  }

  async run(): Promise<{ stop(): Promise<void> }> {
    const { runner, disk, fixture } = this;
    const { clock, transport, watches } = fixture;
    const log = pino({ level: "silent" });
    const store = new MemoryStore(disk);
    const dispatcher = await Dispatcher.open({ store, runner, clock, random: () => 0, observer: {}, log });
    const byLabel = trigger({ namespaces: { type: "labels", labelSelector: "team" } });
    const offer = {
      manifest: manifest({}, [byLabel]),
      origin: { type: "folder", manifest: "functions/copy/function.yaml" },
      bundle: async () => ({
        script: "",
        sourceMap: "",
        sourceMapLength: 0,
        hash: "1",
        inputs: [],
        usesOldObject: false,
      }),
    } as const;
    const live = new LiveFunction(offer, {
      // The test decides how attempts end, so no code is loaded.
      sandbox: { load: async () => {}, unload: async () => {}, divide() {}, unite: async () => {} },
      canaryAborted() {},
      store,
      dispatcher,
      watches,
      reads: { set() {}, delete() {}, of: () => undefined },
      redactor: new Redactor(),
      metrics: new Metrics(),
      manifests: new Map(),
      assignees: new Assignees(),
      watchRoom: new WatchRoom(),
      pauses: await Pauses.open({ store, dispatcher, clock }),
      pausedSets: new Map(),
      grants: undefined,
      own: ownObjects,
      transport,
      namespace: "watchfire",
      clock,
      random: () => 0,
      log,
    });
    await live.start("start");
    return {
      stop: async () => {
        await clock.advance(1000);
        await live.stop({ retire: false });
      },
    };
  }

  /** Answers the `count`th list of the namespaces. */
  async namespaces(count: number, ...lines: readonly object[]): Promise<Stream> {
    return (await this.fixture.server.request(isNamespaces, count)).stream().lines(...lines);
  }

  /** Answers the `count`th list of team-a's objects with all of them. */
  async objects(count: number): Promise<void> {
    (await this.fixture.server.request(isObjects, count)).stream().lines(...objects, bookmark(200, true));
  }

  /** Resolves when so many attempts were made. */
  async told(count: number): Promise<void> {
    while (this.runner.deliveries.length < count) await quiet(this.runner);
    await quiet(this.runner);
  }

  /** Expires the namespaces' history. */
  async expire(stream: Stream): Promise<void> {
    stream.lines(event("ERROR", statusObject(410, "Expired")));
    const { delayMs = 0 } = await this.fixture.observer.entered("backoff");
    await this.fixture.clock.advance(delayMs);
  }

  /** Delivers all objects, then answers one list of namespaces with an empty one. */
  static async inDoubt(): Promise<Follower> {
    const it = await Follower.start();
    await it.run();
    const stream = await it.namespaces(1, teamA, listed(10));
    await it.objects(1);
    await it.told(objects.length);
    await it.expire(stream);
    await it.namespaces(2, listed(20));
    await it.doubts();
    return it;
  }

  /** Waits until the namespaces' source has a list that it does not trust yet. */
  async doubts(): Promise<void> {
    await this.fixture.observer.ended("doubt");
    await quiet(this.runner);
  }

  /** The deliveries after those of the initial objects. */
  get since(): string[] {
    const later = this.runner.deliveries.slice(objects.length);
    return later.map(({ type, flags }) => `${type} ${flags.reason ?? ""}`);
  }
}

test("one empty list of a label's namespaces deletes nothing, and says what it waits for", async () => {
  const it = await Follower.inDoubt();
  const source = it.fixture.watches.status().find(({ kind }) => kind === "Namespace");
  expect([source?.state, source?.cause, source?.message]).toEqual([
    "backoff",
    "doubt",
    expect.stringContaining("lacks most of the known objects"),
  ]);
  await it.fixture.clock.advance(30_000);
  await it.namespaces(3, teamA, listed(30));
  await it.fixture.observer.entered("watching", 3);
  await quiet(it.runner);
  expect(it.since).toEqual([]);
  expect(it.fixture.server.count(isObjects)).toBe(1);
});

test("a label's namespaces that a second list shows to be gone take their objects with them", async () => {
  const it = await Follower.inDoubt();
  await it.fixture.clock.advance(30_000);
  await it.namespaces(3, listed(30));
  await it.told(2 * objects.length);
  expect(new Set(it.since)).toEqual(new Set(["Deleted unselected"]));
});

test("an empty first list of a label's namespaces after a restart deletes nothing either", async () => {
  const it = await Follower.start();
  const before = await it.run();
  await it.namespaces(1, teamA, listed(10));
  await it.objects(1);
  await it.told(objects.length);
  await before.stop();
  await it.run();
  await it.namespaces(2, listed(20));
  await it.doubts();
  expect(it.since).toEqual([]);
  await it.fixture.clock.advance(30_000);
  await it.namespaces(3, listed(30));
  await it.told(2 * objects.length);
  expect(new Set(it.since)).toEqual(new Set(["Deleted unselected"]));
});
