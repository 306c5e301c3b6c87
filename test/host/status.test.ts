import { expect, test } from "vitest";
import type { ErrorCode } from "../../runtime/base/errors.ts";
import { statusOf } from "../../runtime/control/function-status/function-object.ts";
import type { Pause } from "../../runtime/control/pauses.ts";
import type { LiveFunction, LiveState, Trouble } from "../../runtime/host/live-function.ts";
import { isSettled, unsettledBy } from "../../runtime/host/readiness.ts";
import { describeStandby, describeStatus, type StatusParts } from "../../runtime/host/status.ts";
import type { SourceState, SourceStatus } from "../../runtime/informer/fanout/observer.ts";
import { sourceKey } from "../../runtime/informer/fanout/source-spec.ts";
import type { CanaryState } from "../../runtime/sandbox/host/canary-route.ts";
import type { HostedState } from "../../runtime/sandbox/host/hosted-function.ts";
import { manifestOf } from "../access/api-server.ts";
import { trigger } from "../rbac/trigger.ts";
import { counts } from "./counts.ts";

const fault = (code: ErrorCode): Trouble => ({ code, message: `${code}: why` });

const keys = { count: 10_300, withoutObject: 10_000 };

/** True if a runtime is ready whose functions were disabled with these codes. */
function isReadyWith(codes: readonly ErrorCode[], deployment?: Trouble): boolean {
  const liveFunctions = codes.map((code): Pick<LiveFunction, "name" | "state" | "behind"> => {
    const state: LiveState = { type: "disabled", fault: { code, message: code } };
    return { name: "f", state, behind: [] };
  });
  return isSettled({ liveFunctions, sandbox: () => undefined, sources: [], deployment });
}

test("a runtime that can run nothing, by a fault that is no author's, is not ready", () => {
  expect(isReadyWith(["WF_RUNTIME_INTERNAL", "WF_BUNDLE_BROKEN_OFF"])).toBe(false);
});

test("a function's own faults, and a fault of one among others, keep nobody from being ready", () => {
  expect(isReadyWith(["WF_BUNDLE_SYNTAX"])).toBe(true);
  expect(isReadyWith(["WF_BUNDLE_SYNTAX", "WF_RUNTIME_INTERNAL"])).toBe(true);
  expect(isReadyWith([])).toBe(true);
});

test("a runtime that runs nothing because its deployment is damaged is not ready; one that runs something is", () => {
  expect(isReadyWith([], fault("WF_DEPLOYED_INDEX"))).toBe(false);
  expect(isReadyWith(["WF_BUNDLE_SYNTAX"], fault("WF_DEPLOYED_INDEX"))).toBe(true);
});

test("a runtime that is not ready says which function, or what of its deployment, it waits for", () => {
  const disabled = { type: "disabled", fault: fault("WF_RUNTIME_INTERNAL") } as const;
  const why = (...states: LiveState[]) => {
    const liveFunctions = states.map((state, index) => ({ name: `f${index}`, state, behind: ["a source"] }));
    return unsettledBy({
      liveFunctions,
      sandbox: () => undefined,
      sources: [],
      deployment: fault("WF_DEPLOYED_INDEX"),
    });
  };
  expect(why()).toBe("WF_DEPLOYED_INDEX: why");
  expect(why(disabled)).toContain("f0 does not run: WF_RUNTIME_INTERNAL");
  expect(why(disabled, { type: "starting" })).toContain("f1 is being built");
  expect(why(disabled, { type: "running" })).toContain("f1 has not caught up");
});

test("while a function has yet to begin, nobody is asked what the others wait for", () => {
  const asked: string[] = [];
  const running = (name: string) => ({
    name,
    state: { type: "running" } as const,
    get behind() {
      asked.push(name);
      return [];
    },
  });
  const starting = { name: "c", state: { type: "starting" } as const, behind: [] };
  const parts = { sandbox: () => undefined, sources: [], deployment: undefined };
  expect(isSettled({ ...parts, liveFunctions: [running("a"), running("b"), starting] })).toBe(false);
  expect(asked).toEqual([]);
  expect(isSettled({ ...parts, liveFunctions: [running("a"), running("b")] })).toBe(true);
  expect(asked).toEqual(["a", "b"]);
});

/** Conditions of a function that runs and has caught up with two namespaces. */
interface Case {
  readonly state?: LiveState;
  readonly sandbox?: HostedState["state"];
  readonly lacks?: boolean;
  readonly paused?: Pause;
  readonly refusal?: ErrorCode;
  /** States of its two sources. */
  readonly sources?: readonly [SourceState, SourceState];
  readonly behind?: boolean;
  /** How long the second source has been disconnected, in milliseconds. */
  readonly awayMs?: number;
  readonly checkpoint?: ErrorCode;
  readonly dispatch?: StatusParts["dispatch"];
  readonly unloaded?: StatusParts["unloaded"];
  readonly suspended?: StatusParts["suspended"];
  readonly trustGroup?: string;
  readonly origin?: LiveFunction["origin"];
  readonly executors?: ErrorCode;
  readonly canary?: CanaryState;
  /** Memory limit of the executors' container, in bytes; the function's is one. */
  readonly memoryLimit?: number;
}

function statusIn({ state = { type: "running" }, sandbox = "ready", ...more }: Case) {
  const names = ["a", "b"];
  const watched = trigger({ namespaces: { type: "names", names } });
  const sources = names.map((namespace, index): SourceStatus => {
    const at = more.sources?.[index] ?? "watching";
    const of = { apiVersion: "v1", kind: "ConfigMap", namespace, labelSelector: "", fieldSelector: "" };
    const cause = at === "missing" ? "not_served" : undefined;
    return { ...of, state: at, cause, subscribers: 1, reconnects: 0, awayMs: index === 1 ? more.awayMs : undefined };
  });
  const keys = sources.map((source) => sourceKey(source));
  const liveFunction = {
    name: "f",
    state,
    manifest: manifestOf({ triggers: [watched], ...(more.trustGroup && { trustGroup: more.trustGroup }) }),
    origin: more.origin ?? { type: "folder", manifest: "f/function.yaml" },
    refusal: more.refusal && fault(more.refusal),
    behind: more.behind ? keys : [],
    sources: () => keys,
    canary: { state: more.canary } as LiveFunction["canary"],
  } satisfies Partial<LiveFunction>;
  const parts = {
    role: "active",
    checkpoint: more.checkpoint && fault(more.checkpoint),
    deployment: undefined,
    executors: {
      rights: undefined,
      trouble: more.executors && fault(more.executors),
      memoryLimit: more.memoryLimit,
    },
    liveFunctions: [liveFunction as unknown as LiveFunction],
    rejected: [],
    dispatch: more.dispatch ?? [],
    unloaded: (name: string) => more.unloaded?.(name),
    suspended: more.suspended ?? new Map(),
    sandbox: () => ({ state: sandbox, detail: "why", kills: 0 }),
    sources,
    redact: (_: string, text: string) => text,
    paused: () => more.paused,
    forbidden: () => (more.lacks ? fault("WF_KUBE_FORBIDDEN") : undefined),
  } satisfies StatusParts;
  return describeStatus(parts);
}

test("a function that is not loaded has the counts of its record, and no count that is not known", () => {
  const letterStock = { count: 2, withoutBody: 1, bytes: 9, lettersDropped: 0, bodiesDropped: 0 };
  const state: LiveState = { type: "disabled", fault: fault("WF_BUNDLE_SYNTAX") };
  const unloaded = () => ({ waiting: { count: 3, ageSeconds: 60 }, letterStock });
  const inMemory = { queued: 0, inFlight: 0, requeued: 0, blockedLanes: 0, failures: 0 };
  const letters = { deadLetters: 2, deadLettersWithoutBody: 1 };
  const own = { ...letters, spilled: 3, lagSeconds: 60, ...inMemory };
  const suspended = new Map([
    ["gone", Date.parse("2026-01-01")],
    ["old", undefined],
  ]);
  const { functions } = statusIn({ state, unloaded, suspended });
  expect(functions).toEqual([
    expect.objectContaining({ name: "f", ready: false, reason: "BuildFailed", ...own }),
    expect.objectContaining({
      name: "gone",
      ready: false,
      reason: "Suspended",
      message: expect.stringContaining("kept until 2026-01-08T00:00:00.000Z"),
      ...own,
    }),
    expect.objectContaining({ name: "old", reason: "Suspended", message: expect.stringContaining("dead letters") }),
  ]);
  const [counting] = statusIn({ state, unloaded: () => ({ letterStock }) }).functions;
  expect(counting).toMatchObject({ ...letters, ...inMemory });
  expect(counting).not.toHaveProperty("spilled");
  const [standby] = describeStandby([manifestOf({})], [], undefined, undefined, {
    rights: undefined,
    trouble: undefined,
  }).functions;
  expect(Object.keys(standby ?? {})).not.toContain("deadLetters");
});

test.each<[string, Case, string]>([
  ["that runs", {}, "ready"],
  ["that is being built", { state: { type: "starting" } }, "Starting"],
  ["whose lists are being read", { behind: true }, "CatchingUp"],
  ["whose account lacks something", { lacks: true }, "Forbidden WF_KUBE_FORBIDDEN"],
  [
    "that waits for its rights",
    { state: { type: "waiting", fault: fault("WF_KUBE_FORBIDDEN") } },
    "Forbidden WF_KUBE_FORBIDDEN",
  ],
  [
    "that waits for a Secret",
    { state: { type: "waiting", fault: fault("WF_ACCESS_ENV") } },
    "EnvironmentMissing WF_ACCESS_ENV",
  ],
  [
    "whose code does not build",
    { state: { type: "disabled", fault: fault("WF_BUNDLE_SYNTAX") } },
    "BuildFailed WF_BUNDLE_SYNTAX",
  ],
  [
    "whose code does not load",
    { state: { type: "disabled", fault: fault("WF_SANDBOX_LOAD") } },
    "LoadFailed WF_SANDBOX_LOAD",
  ],
  [
    "that we failed",
    { state: { type: "disabled", fault: fault("WF_RUNTIME_INTERNAL") } },
    "InternalError WF_RUNTIME_INTERNAL",
  ],
  ["whose code does not load again", { sandbox: "failed" }, "LoadFailed"],
  ["that no executor can take", { executors: "WF_SANDBOX_NO_WARDEN" }, "ExecutorMissing WF_SANDBOX_NO_WARDEN"],
  [
    "that waits for its executor",
    { executors: "WF_SANDBOX_NO_WARDEN", state: { type: "starting" } },
    "ExecutorMissing WF_SANDBOX_NO_WARDEN",
  ],
  ["whose memory the container has not", { memoryLimit: 0.5 }, "ready ExecutorTooSmall WF_SANDBOX_CONTAINER_SMALL"],
  ["whose memory the container has", { memoryLimit: 1 }, "ready"],
  ["that waits for an executor", { sandbox: "loading" }, "Starting"],
  ["whose manifest pauses it", { paused: { by: "manifest" } }, "Paused"],
  ["that a command paused, and whose share of the disk is full", { paused: { by: "command", since: 0 } }, "Paused"],
  [
    "that is paused, and whose watches are revoked",
    { paused: { by: "manifest" }, sources: ["forbidden", "forbidden"] },
    "Forbidden",
  ],
  ["that has as many keys as it may", { dispatch: [{ ...counts, keys: { ...keys, full: true } }] }, "KeysFull"],
  ["that has many keys", { dispatch: [{ ...counts, keys: { ...keys, full: false } }] }, "ready"],
  ["whose share of the disk is full", { dispatch: [{ ...counts, full: true }] }, "Backlogged"],
  ["in quarantine", { sandbox: "quarantined" }, "Quarantined"],
  ["that stands still for the executors it brought down", { sandbox: "parked" }, "Parked"],
  ["all of whose watches are revoked", { sources: ["forbidden", "forbidden"] }, "Forbidden"],
  ["one of whose watches is revoked", { sources: ["watching", "forbidden"] }, "Forbidden"],
  ["whose kind was removed", { sources: ["missing", "missing"] }, "KindMissing"],
  ["that cannot be watched for", { sources: ["degraded", "watching"] }, "Degraded"],
  ["that cannot list yet", { behind: true, sources: ["backoff", "watching"] }, "Unreachable"],
  ["whose API server is away for a moment", { sources: ["backoff", "backoff"] }, "ready Unreachable"],
  ["whose API server is away for long", { sources: ["watching", "discovering"], awayMs: 61_000 }, "Unreachable"],
  [
    "whose positions cannot be saved",
    { checkpoint: "WF_CHECKPOINT_WRITE_FAILED" },
    "CheckpointFailing WF_CHECKPOINT_WRITE_FAILED",
  ],
  ["whose change is refused", { refusal: "WF_BUNDLE_SYNTAX" }, "ready ChangeRefused WF_BUNDLE_SYNTAX"],
  [
    "whose canary was aborted",
    {
      canary: {
        ...{ id: "1", share: 10, since: 0, aborted: "why" },
        current: { runs: 0, failures: 0, p50Ms: undefined, p99Ms: undefined },
        canary: { runs: 1, failures: 1, p50Ms: 1, p99Ms: 1 },
      },
    },
    "ready CanaryAborted",
  ],
  ["whose change asks for too much", { refusal: "WF_KUBE_FORBIDDEN" }, "ready ChangeRefused WF_KUBE_FORBIDDEN"],
  [
    "whose change is refused, and its watch revoked",
    { refusal: "WF_BUNDLE_SYNTAX", sources: ["forbidden", "watching"] },
    "Forbidden",
  ],
])("/status and the Function object say the same of a function %s", (_, of, said) => {
  const [report] = statusIn(of).functions;
  if (!report) throw new Error("it is not on the status page");
  const { ready, reason, code } = report;
  expect([ready ? "ready" : [], reason ?? [], code ?? []].flat().join(" ")).toBe(said);
  expect(report.message === undefined).toBe(reason === undefined);
  const object = statusOf(report, [], 0);
  const condition = object.conditions.find(({ type }) => type === "Ready");
  expect(object.reason ?? undefined).toBe(reason);
  expect(condition?.status === "True").toBe(ready);
  if (!ready) expect(condition?.reason).toBe(reason);
});

test("a source says in the same words why it is not read, and beside them its own", () => {
  const { sources } = statusIn({ sources: ["missing", "watching"] });
  expect(sources).toMatchObject([
    { state: "missing", reason: "KindMissing", cause: "not_served" },
    { state: "watching" },
  ]);
  expect(sources[1]).not.toHaveProperty("reason");
});

test("a function's trust group stands beside its name, and nothing where its manifest names none", () => {
  const [common] = statusIn({}).functions;
  expect(common).not.toHaveProperty("trustGroup");
  expect(common).not.toHaveProperty("set");
  const origin = { type: "config-map", name: "c", sha256: "", set: "team-a" } as const;
  expect(statusIn({ origin }).functions).toMatchObject([{ name: "f", set: "team-a" }]);
  expect(statusIn({ trustGroup: "payments" }).functions).toMatchObject([{ name: "f", trustGroup: "payments" }]);
});

test("a function tells of its conditions that could not be evaluated, each at its trigger, and of what was filtered", () => {
  const trouble = { condition: "named", count: 2, message: "yields string, not bool" };
  const [watched = ""] = statusIn({}).functions.flatMap(({ triggers }) => triggers.map(({ name }) => name));
  const dispatch = [
    {
      function: "f",
      letterStock: { count: 0, withoutBody: 0 },
      filtered: [{ trigger: watched, why: "condition", condition: "large", count: 3, last: 1_000 }],
      conditionErrors: [
        { trigger: watched, ...trouble },
        { trigger: "another", ...trouble, count: 9 },
      ],
    },
  ] as unknown as StatusParts["dispatch"];
  expect(statusIn({ dispatch }).functions[0]?.triggers).toMatchObject([{ name: watched, conditionErrors: [trouble] }]);
  expect(statusIn({}).functions[0]?.triggers[0]).not.toHaveProperty("conditionErrors");
  expect(statusIn({ dispatch }).functions[0]?.filtered).toEqual([
    { trigger: watched, why: "condition", condition: "large", count: 3, last: "1970-01-01T00:00:01.000Z" },
  ]);
  expect(statusIn({}).functions[0]).not.toHaveProperty("filtered");
});

test("a function at its bound of keys says how many it has, and how many of them have no object", () => {
  const [said] = statusIn({ dispatch: [{ ...counts, keys: { ...keys, full: true } }] }).functions;
  expect(said?.message).toMatch(/10300 keys .* 10000 of them without an object: changes wait/);
  expect(said?.keys).toEqual(keys);
});
