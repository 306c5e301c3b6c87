import { describe, expect, it, onTestFinished } from "vitest";
import { appliedMapLimit } from "../../../runtime/bundle/limits.ts";
import { entrySource } from "../../../runtime/bundle/source-path.ts";
import { limitError } from "../../../runtime/sandbox/host/failure.ts";
import { MappingThread } from "../../../runtime/sandbox/positions/mapping-thread.ts";
import { StackMapper } from "../../../runtime/sandbox/positions/stack-mapper.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const stack = "Error: boom\n    at handler (app:///f/handler.js:1:1)\n    at watchfire:guest:1:1";
const mapped = "Error: boom\n    at handler (f.ts:1:1)";
const inBundle = "Error: boom\n    at handler (app:///f/handler.js:1:1)";

interface Shape {
  readonly mappings?: string;
  readonly sourcesContent?: readonly string[];
  readonly source?: string;
}

const mapOf = ({ mappings = "AAAA", sourcesContent, source = "f.ts" }: Shape = {}): string =>
  JSON.stringify({ version: 3, sources: [source], sourcesContent, names: [], mappings });

/** Segments of one line, each at the next column: the form with the most memory for its length. */
const longMappings = (length: number): string => `AAAA${",CAAC".repeat(length / 5)}`;

/** On a clock that stands still, no question is late, however busy the machine, and a rate never refills. */
function threadForTest(clock = new VirtualClock()): MappingThread {
  const thread = new MappingThread(clock);
  onTestFinished(() => thread.close());
  return thread;
}

/** A function's mapper, and the number of times its map was read from the store. */
function mapperOf(thread: MappingThread, sourceMap = mapOf(), name = "f") {
  const seen = { reads: 0 };
  const bundle = {
    sourceMapLength: sourceMap.length,
    get sourceMap() {
      seen.reads++;
      return sourceMap;
    },
  };
  return { mapper: new StackMapper(name, bundle, thread), seen };
}

/** CPU time of this thread in milliseconds until the request is sent, and until the result is there. */
async function cpuOf<Result>(work: () => Result | Promise<Result>) {
  const before = process.threadCpuUsage();
  const since = () => {
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };
  const pending = work();
  const asking = since();
  return { result: await pending, asking, whole: since() };
}

describe("the event loop is held for less than 10 ms", () => {
  it("by a map of 8 MB", async () => {
    const { mapper } = mapperOf(threadForTest(), mapOf({ sourcesContent: ["x".repeat(8e6)] }));
    const { result, whole } = await cpuOf(() => mapper.map(stack));
    expect(whole).toBeLessThan(10);
    expect(result).toContain(inBundle);
  });

  it("by the largest map that is applied", async () => {
    const thread = threadForTest();
    await mapperOf(thread, mapOf(), "starts-the-thread").mapper.map(stack);
    const { mapper } = mapperOf(thread, mapOf({ mappings: longMappings(appliedMapLimit - 100) }));
    const { result, asking, whole } = await cpuOf(() => mapper.map(stack));
    expect(asking).toBeLessThan(10);
    // Reading the map takes more than 100 ms on whichever thread does it. This thread's other work is counted, too.
    expect(whole).toBeLessThan(60);
    expect(result).toBe(mapped);
  });
});

describe("a stack keeps the bundle's positions and says why", () => {
  const why = (text: string) => `${inBundle}\n    (positions of the bundle: ${text})`;

  it.each([
    [
      "of a map above 1 MiB",
      mapOf({ sourcesContent: ["x".repeat(2 ** 20)] }),
      "its source map has 1.1 MiB, and 1 MiB are read at most",
    ],
    ["of a function without a map", "", "it has no source map"],
    ["of a map that is none", "no map", "its source map cannot be read"],
    [
      "of a map with more files than a build takes",
      JSON.stringify({ version: 3, sources: Array(10_001).fill("a"), mappings: "AAAA" }),
      "its source map cannot be read",
    ],
  ])("%s", async (_, map, reason) => {
    const { mapper } = mapperOf(threadForTest(), map);
    expect(await mapper.map(stack)).toBe(why(reason));
    expect(await mapper.map(stack)).toBe(why(reason));
    expect(JSON.parse(await mapper.mapJson(JSON.stringify({ error: stack })))).toEqual({ error: why(reason) });
    expect(await mapper.place(stack)).toBeUndefined();
    expect(await mapper.entry()).toBeUndefined();
  });

  it("once its question has waited for ten seconds", async () => {
    const clock = new VirtualClock();
    const text = mapperOf(threadForTest(clock)).mapper.map(stack);
    await clock.advance(10_000);
    expect(await text).toBe(why("its source map was not read in time"));
  });

  it("once the thread is closed", async () => {
    const thread = threadForTest();
    const text = mapperOf(thread).mapper.map(stack);
    await thread.close();
    expect(await text).toBe(why("its source map was not read in time"));
  });

  it("in the error of a limit", async () => {
    const { mapper } = mapperOf(threadForTest(), "");
    const limits = { memoryBytes: 1, cpuPerEventMs: 1 };
    const error = await limitError("cpu", { name: "", message: "", stack }, mapper, limits, 1000);
    expect(error.stack).toContain(
      "\n    at handler (app:///f/handler.js:1:1)\n    (positions of the bundle: it has no source map)",
    );
  });
});

it("of one function's errors above the rate none is mapped, and each of another's is", async () => {
  const thread = threadForTest();
  const [greedy, other] = [mapperOf(thread, mapOf(), "greedy").mapper, mapperOf(thread, mapOf(), "other").mapper];
  const ask = (mapper: StackMapper, count: number) =>
    Promise.all(Array.from({ length: count }, () => mapper.map(stack)));
  const [greedys, others] = await Promise.all([ask(greedy, 500), ask(other, 20)]);
  expect(greedys.filter((text) => text === mapped)).toHaveLength(20);
  for (const text of greedys.filter((one) => one !== mapped))
    expect(text).toBe(
      `${inBundle}\n    (positions of the bundle: no more than 10 stacks of a function are mapped each second)`,
    );
  expect(others).toEqual(others.map(() => mapped));
});

it("a new version of a function, or another of its instances, has no rate of its own", async () => {
  const thread = threadForTest();
  const texts = Array.from({ length: 30 }, () => mapperOf(thread).mapper.map(stack));
  expect(texts.filter((text) => typeof text === "string")).toHaveLength(10);
});

describe("a map is read once", () => {
  it("for all stacks that come while it is kept", async () => {
    const { mapper, seen } = mapperOf(threadForTest());
    for (let count = 0; count < 15; count++) expect(await mapper.map(stack)).toBe(mapped);
    expect(seen.reads).toBe(1);
  });

  it("of each of a hundred functions with ordinary maps", async () => {
    const thread = threadForTest();
    const all = Array.from({ length: 100 }, (_, index) =>
      mapperOf(thread, mapOf({ mappings: longMappings(10_000) }), `f${index}`),
    );
    for (let round = 0; round < 3; round++) for (const { mapper } of all) expect(await mapper.map(stack)).toBe(mapped);
    expect(all.map(({ seen }) => seen.reads)).toEqual(all.map(() => 1));
  });

  it("and again where larger ones took its room", async () => {
    const thread = threadForTest();
    const [first, second] = ["a", "b"].map((name) =>
      mapperOf(thread, mapOf({ mappings: longMappings(900_000) }), name),
    );
    for (const one of [first, first, second, second, first]) expect(await one?.mapper.map(stack)).toBe(mapped);
    expect([first?.seen.reads, second?.seen.reads]).toEqual([2, 1]);
  });

  it("and again where another version of its function was read", async () => {
    const thread = threadForTest();
    const [old, next] = [mapperOf(thread), mapperOf(thread)];
    for (const one of [old, next, next, old]) await one.mapper.map(stack);
    expect([old.seen.reads, next.seen.reads]).toEqual([2, 1]);
  });
});

it("a map that takes all of the thread's memory ends the thread, and no other function's stacks", async () => {
  const thread = threadForTest();
  const sourceMap = mapOf({ mappings: longMappings(40_000_000) });
  const hog = { function: "hog", bundle: { sourceMap, sourceMapLength: 1 } };
  const question = { kind: "text", text: stack } as const;
  const { mapper } = mapperOf(thread);
  const [hogs, others] = await Promise.all([thread.ask(hog, question), mapper.map(stack)]);
  expect([hogs, others]).toEqual(["unreadable", mapped]);
  expect(thread.ask(hog, question)).toBe("unreadable");
  expect(await mapper.map(stack)).toBe(mapped);
});

it("a file's name longer than a path may be is in no stack", async () => {
  const { mapper } = mapperOf(threadForTest(), mapOf({ source: "f".repeat(5000) }));
  expect(await mapper.map(`${stack}\nlast`)).toBe("Error: boom\nlast");
});

it("names of files make a stack no longer than 64 Ki characters", async () => {
  const { mapper } = mapperOf(threadForTest(), mapOf({ source: "f".repeat(4000) }));
  const text = await mapper.map(Array.from({ length: 200 }, () => "    at app:///f/handler.js:1:1").join("\n"));
  expect(text.length).toBeLessThanOrEqual(64 * 1024);
  expect(text.length).toBeGreaterThan(60 * 1024);
});

it("a text without a frame comes back at once, and asks nobody", () => {
  const { mapper, seen } = mapperOf(threadForTest());
  for (let count = 0; count < 100; count++)
    expect(mapper.map("Error: boom\n    at my desk")).toBe("Error: boom\n    at my desk");
  expect(mapper.mapJson('{"a":"b"}')).toBe('{"a":"b"}');
  expect(seen.reads).toBe(0);
});

it("a handler's beginning is looked for once, however often it breaks a limit", async () => {
  const sourcesContent = [`${"const a = 1;\n".repeat(70_000)}export default () => {};`, ""];
  const sources = ["handler.ts", entrySource];
  const thread = threadForTest();
  const { mapper } = mapperOf(
    thread,
    JSON.stringify({ version: 3, sources, sourcesContent, names: [], mappings: "AAAA" }),
  );
  const said = { name: "", message: "", stack: "" };
  const fail = () => limitError("cpu", said, mapper, { memoryBytes: 1, cpuPerEventMs: 1 }, 1000);
  for (let count = 0; count < 64; count++) expect((await fail()).stack).toContain("begins at handler.ts:70001:1");
});
