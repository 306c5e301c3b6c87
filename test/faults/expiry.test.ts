import fc from "fast-check";
import { expect, test } from "vitest";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { bookmark, configMap, type Exchange, event, type Stream, statusObject } from "./api-server.ts";
import { configMaps, FaultFixture, isPlainWatch, isWatchList } from "./fixture.ts";

interface Refusal {
  readonly form: "an HTTP status" | "an ERROR event";
  /** The oldest revision that the server names in its error; `undefined` if it does not name one, like etcd. */
  readonly oldest: number | undefined;
}

/** A server whose history has an event at each of `versions`, and begins after `begins`. */
class HistoryServer {
  refused = 0;
  /** Numbers of the accepted watches that break off after the first half of their events. */
  breaks: ReadonlySet<number> = new Set();
  private readonly versions: number[];
  private readonly begins: number;
  private readonly refusal: Refusal;
  private readonly streams: { readonly stream: Stream; readonly exchange: Exchange }[] = [];

  constructor(fixture: FaultFixture, versions: readonly number[], begins: number, refusal: Refusal) {
    this.versions = [...versions];
    this.begins = begins;
    this.refusal = refusal;
    fixture.server.script(isPlainWatch, (exchange) => this.watch(exchange));
    fixture.server.script(isWatchList, (exchange) => {
      const items = this.versions.map((version) => event("ADDED", configMap(`o${version}`, version)));
      this.open(exchange).lines(...items, bookmark(this.newest, true));
    });
  }

  get newest(): number {
    return Math.max(...this.versions);
  }

  /** Sends one more event on every stream. */
  append(): number {
    const version = this.newest + 1;
    this.versions.push(version);
    for (const { stream, exchange } of this.streams) {
      if (!exchange.socket.destroyed) stream.lines(event("ADDED", configMap(`o${version}`, version)));
    }
    return version;
  }

  /** The events after `from` in this history, one line each. */
  after(from: number): string[] {
    return this.versions.filter((version) => version > from).map((version) => `Added o${version} ${version}`);
  }

  /** The checkpoint that a subscriber from `position` reaches with these events, each of which must be the next one. */
  reached(position: number, log: readonly string[]): number {
    let reached = position;
    for (const line of log) {
      if (line.startsWith("end")) reached = Number(line.split(" ")[1]);
      if (!line.startsWith("Added")) continue;
      expect(line).toBe(this.after(reached)[0]);
      reached = Number(line.split(" ")[2]);
    }
    return reached;
  }

  private watch(exchange: Exchange): void {
    const from = Number(exchange.query.get("resourceVersion"));
    if (from < this.begins) {
      this.refuse(exchange, from);
      return;
    }
    const lines = this.versions.filter((version) => version > from);
    const breaks = this.breaks.has(this.streams.length);
    const told = breaks ? lines.slice(0, lines.length / 2) : lines;
    const stream = this.open(exchange);
    if (told.length > 0) stream.lines(...told.map((version) => event("ADDED", configMap(`o${version}`, version))));
    if (breaks) stream.fin();
  }

  private refuse(exchange: Exchange, from: number): void {
    this.refused++;
    const { form, oldest } = this.refusal;
    const unnumbered = "The resourceVersion for the provided watch is too old.";
    const message = oldest === undefined ? unnumbered : `too old resource version: ${from} (${oldest})`;
    if (form === "an HTTP status") exchange.status(410, "Expired", { message });
    else exchange.stream().lines(event("ERROR", statusObject(410, "Expired", { message })));
  }

  private open(exchange: Exchange): Stream {
    const stream = exchange.stream();
    this.streams.push({ stream, exchange });
    return stream;
  }
}

/** Advances time, a second at a time, until `isSo` returns true. */
async function until(fixture: FaultFixture, isSo: () => boolean): Promise<void> {
  for (let seconds = 0; seconds < 60 && !isSo(); seconds++) await fixture.pass(1);
  expect(isSo()).toBe(true);
}

/** A subscriber whose checkpoint does not advance, like a function whose first event is stuck. */
class StuckSubscriber extends RecordingSubscriber {
  constructor(position: string, id: string) {
    super(position, id);
    Object.defineProperty(this, "resumeFrom", { get: () => position, set() {} });
  }
}

function group(fixture: FaultFixture, positions: readonly number[]): RecordingSubscriber[] {
  return positions.map((position, index) => {
    const subscriber = new StuckSubscriber(String(position), `n${index}`);
    fixture.watches.subscribe(configMaps, subscriber);
    return subscriber;
  });
}

const lists = ({ log }: RecordingSubscriber) => log.filter((line) => line.startsWith("list"));
const followed = ({ log }: RecordingSubscriber) => log.filter((line) => /^(Added|Modified|Deleted)/.test(line));
/** True if the subscriber has everything up to this version. */
const at = (version: number) => (subscriber: RecordingSubscriber) =>
  (subscriber.log.at(-1) ?? subscriber.resumeFrom)?.endsWith(String(version)) === true;

const forms: Refusal[] = [
  { form: "an HTTP status", oldest: 18 },
  { form: "an HTTP status", oldest: undefined },
  { form: "an ERROR event", oldest: 18 },
  { form: "an ERROR event", oldest: undefined },
];

test.each(forms)(
  "of a group only those whose position is gone list: $form of 410 that names $oldest",
  async (refusal) => {
    await using fixture = await FaultFixture.start();
    const server = new HistoryServer(fixture, [7, 19, 25, 31], 18, refusal);
    const all = group(fixture, [5, 8, 8, 18, 20, 30]);
    await until(fixture, () => all.every(at(31)) && fixture.watches.status().length === 1);
    expect(all.map(lists)).toEqual([
      ["list relist from 5"],
      ["list relist from 8"],
      ["list relist from 8"],
      [],
      [],
      [],
    ]);
    expect(all.slice(3).map(followed)).toEqual([server.after(18), server.after(20), server.after(30)]);
    expect(fixture.server.count(isWatchList)).toBe(1);
    expect(fixture.observer.gones).toBe(1);
    if (refusal.oldest !== undefined) expect(server.refused).toBe(1);
  },
);

test.each(forms)(
  "a group whose positions are all gone lists once for all: $form of 410 that names $oldest",
  async ({ form, oldest }) => {
    await using fixture = await FaultFixture.start();
    new HistoryServer(fixture, [7, 19, 25, 31], 30, { form, oldest: oldest && 30 });
    const all = group(fixture, [5, 8, 18, 20, 25, 29]);
    await until(fixture, () => all.every(at(31)));
    await fixture.pass(5);
    expect(all.map((subscriber) => lists(subscriber).length)).toEqual([1, 1, 1, 1, 1, 1]);
    expect(fixture.server.count(isWatchList)).toBe(1);
    expect(fixture.observer.gones).toBe(1);
  },
);

test.each(forms)(
  "one that joins a stream from a position that is gone lists alone: $form of 410 that names $oldest",
  async (refusal) => {
    await using fixture = await FaultFixture.start();
    const server = new HistoryServer(fixture, [19, 25], 18, refusal);
    const [first] = group(fixture, [18]) as [RecordingSubscriber];
    await first.saw("Added o25 25");
    const [late] = group(fixture, [5]) as [RecordingSubscriber];
    await until(fixture, () => at(25)(late) && fixture.watches.status().length === 1);
    server.append();
    await Promise.all([first.saw("Added o26 26"), late.saw("Added o26 26")]);
    expect(first.log).toEqual(server.after(18));
    expect(late.log).toEqual([
      "list relist from 5",
      "item o19 19",
      "item o25 25",
      "end 25",
      "bookmark 25",
      "Added o26 26",
    ]);
  },
);

test("where the server does not say how far its history reaches, twenty positions are told apart by six watches", async () => {
  for (const begins of [2, 9, 15, 20]) {
    await using fixture = await FaultFixture.start();
    const form = "an ERROR event";
    const server = new HistoryServer(fixture, [21], begins, { form, oldest: undefined });
    const positions = Array.from({ length: 20 }, (_, index) => index + 1);
    const all = group(fixture, positions);
    await until(fixture, () => all.every(at(21)));
    expect(all.map((subscriber) => lists(subscriber).length)).toEqual(positions.map((each) => +(each < begins)));
    expect(server.refused).toBeLessThanOrEqual(6);
    expect(fixture.server.count(isPlainWatch)).toBeLessThanOrEqual(8);
  }
});

test("once it is known how far the history reaches, a stream starts from its smallest position again", async () => {
  await using fixture = await FaultFixture.start();
  new HistoryServer(fixture, [7, 19, 25, 31], 18, { form: "an ERROR event", oldest: undefined });
  const first = group(fixture, [5, 20, 30]);
  await until(fixture, () => first.every(at(31)) && fixture.watches.status().length === 1);
  const watches = fixture.server.count(isPlainWatch);
  const late = group(fixture, [19, 22, 28]);
  await until(fixture, () => late.every(at(31)));
  expect(fixture.server.count(isPlainWatch)).toBe(watches + 1);
});

test("the first line of the others' stream shows that it was accepted, and whoever needs a list waits no longer", async () => {
  await using fixture = await FaultFixture.start();
  new HistoryServer(fixture, [20], 18, { form: "an ERROR event", oldest: 18 });
  const [old] = group(fixture, [5, 19]) as [RecordingSubscriber];
  await old.saw("end 20");
});

test("those who went on alone leave nobody behind, and the one whose position was gone may leave before its list", async () => {
  await using fixture = await FaultFixture.start();
  const server = new HistoryServer(fixture, [20], 18, { form: "an HTTP status", oldest: 18 });
  const [old, young] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("20", "young")];
  const place = fixture.watches.subscribe(configMaps, old);
  fixture.watches.subscribe(configMaps, young);
  await fixture.server.request(isPlainWatch, 2);
  await place.close();
  await fixture.pass(2);
  server.append();
  await young.saw("Added o21 21");
  expect([fixture.server.count(isWatchList), old.log]).toEqual([0, []]);
  expect(fixture.watches.status()).toMatchObject([{ subscribers: 1, state: "watching" }]);
});

test("where everybody with history left leaves, those without list where they are", async () => {
  await using fixture = await FaultFixture.start();
  new HistoryServer(fixture, [20], 18, { form: "an HTTP status", oldest: 18 });
  const [old, young] = [new RecordingSubscriber("5", "old"), new RecordingSubscriber("20", "young")];
  fixture.watches.subscribe(configMaps, old);
  const place = fixture.watches.subscribe(configMaps, young);
  await fixture.server.request(isPlainWatch, 2);
  await place.close();
  await until(fixture, () => at(20)(old));
  expect(fixture.watches.status()).toMatchObject([{ subscribers: 1, state: "watching" }]);
});

const scenarios = fc.record({
  versions: fc.uniqueArray(fc.integer({ min: 10, max: 59 }), { minLength: 1, maxLength: 12 }),
  positions: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 12 }),
  late: fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 3 }),
  begins: fc.integer({ min: 1, max: 60 }),
  form: fc.constantFrom("an HTTP status" as const, "an ERROR event" as const),
  /** Error of the version that the server names; `undefined` if it does not name one. */
  lie: fc.option(fc.constantFrom(0, 0, 0, -20, 20), { nil: undefined }),
  breaks: fc.array(fc.nat({ max: 8 }), { maxLength: 4 }),
});

test("whatever the server says of its history nobody misses an event, gets one twice, or lists more than once", async () => {
  const holds = fc.asyncProperty(scenarios, async ({ versions, positions, late, begins, form, lie, breaks }) => {
    await using fixture = await FaultFixture.start();
    const sorted = [...versions, 60].toSorted((a, b) => a - b);
    const oldest = lie === undefined ? undefined : Math.min(60, Math.max(1, begins + lie));
    const server = new HistoryServer(fixture, sorted, begins, { form, oldest });
    server.breaks = new Set(breaks);
    const all = group(fixture, positions);
    await fixture.pass(1);
    all.push(...group(fixture, late));
    await until(fixture, () => all.every(at(60)) && fixture.watches.status().length === 1);
    const last = server.append();
    await until(fixture, () => all.every(at(last)));
    for (const [index, subscriber] of all.entries()) {
      const position = [...positions, ...late][index] ?? 0;
      const ends = subscriber.log.filter((line) => line.startsWith("end"));
      expect(ends.length).toBe(lists(subscriber).length);
      expect(ends.length).toBeLessThanOrEqual(1);
      if (position >= Math.max(begins, oldest ?? 0)) expect(ends).toEqual([]);
      if (position < begins) expect(ends).toHaveLength(1);
      expect(server.reached(position, subscriber.log)).toBe(last);
    }
    expect(fixture.server.count(isWatchList)).toBeLessThanOrEqual(1 + late.length);
  });
  await fc.assert(holds, { numRuns: 60 });
}, 60_000);
