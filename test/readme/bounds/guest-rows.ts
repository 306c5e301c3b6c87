import { type Bound, constant, inFile, inFolder, perFunctionOnly, runtimeAlone, sizeOf } from "./bound.ts";

/** Bounds of manifests, of executors, of handlers' calls and of handlers' output. */
export const guestRows = (): readonly Bound[] => [...manifests(), ...executors(), ...calls(), ...said()];

function executors(): Bound[] {
  const processes = constant("host/components.ts", "executorLimit");
  const each = constant("sandbox/host/pool.ts", "functionsEach");
  const [untaken, frames] = [
    constant("sandbox/host/executor-process.ts", "mostUntaken"),
    constant("sandbox/host/executor-process.ts", "maxFrames"),
  ];
  const [down, up] = [constant("sandbox/wire.ts", "maxFrameDown"), constant("sandbox/wire.ts", "maxFrameUp")];
  const inside = constant("sandbox/host/placement.ts", "mostInside");
  const batch = constant("sandbox/host/hosted-function.ts", "batchLimit");
  const waits = constant("sandbox/host/executor.ts", "mostWaiting");
  const blames = constant("sandbox/host/sandbox.ts", "maxBlames");
  const strangers = constant("sandbox/host/supervisor-client.ts", "maxStrangers");
  const supervisor = constant("sandbox/supervisor/frames.ts", "maxSupervisorFrame");
  const values = constant("sandbox/host/json-shape.ts", "maxValues");
  const map = constant("bundle/limits.ts", "appliedMapLimit");
  const [heap, held, questions, accounts, mapped] = [
    constant("sandbox/positions/mapping-thread.ts", "heapMb"),
    constant("sandbox/positions/mapping-thread.ts", "mostHeld"),
    constant("sandbox/positions/question-queue.ts", "mostWaiting"),
    constant("sandbox/positions/question-queue.ts", "mostAccounts"),
    constant("sandbox/positions/question-queue.ts", "mappedAtOnce"),
  ] as const;
  return [
    {
      what: "executors",
      ofFunction: "as many as it needs",
      ofRuntime: `one for ${each.n} functions, one per core, at most ${processes.n}`,
      beyond: "functions share them",
      set: [processes.of, each.of],
    },
    {
      what: "bytes sent to executors that they have not read",
      ofFunction: runtimeAlone,
      ofRuntime: `${untaken.size} each`,
      beyond: "nothing more is sent; an executor that reads nothing for ten seconds is killed",
      set: [untaken.of],
      memory: processes.value * untaken.value,
    },
    {
      what: "events of a function in an executor",
      ofFunction: `${inside.n}, ${batch.n} in one entry; ${waits.size} of waiting ones`,
      ofRuntime: perFunctionOnly,
      beyond: "the others wait in the parent",
      set: [inside.of, batch.of, waits.of, ...inFolder("sandbox/executor/")],
    },
    {
      what: "one frame",
      ofFunction: `${down.size} to an executor, ${up.size} from it, of ${values.n} values`,
      ofRuntime: `${frames.n} frames per executor in 250 ms`,
      beyond: "the executor is killed",
      set: [
        down.of,
        up.of,
        frames.of,
        values.of,
        ...inFile(
          "sandbox/host/json-shape.ts",
          "sandbox/host/frames.ts",
          "sandbox/host/run-output.ts",
          "sandbox/host/executor.ts",
        ),
      ],
    },
    {
      what: "connections of supervisors before their greeting, and their frames",
      ofFunction: runtimeAlone,
      ofRuntime: `${strangers.n}, of ${sizeOf(supervisor.value)}`,
      beyond: "closed",
      set: [strangers.of, supervisor.of],
    },
    {
      what: "functions whose history in executors is known",
      ofFunction: runtimeAlone,
      ofRuntime: blames.n,
      beyond: "the oldest is forgotten",
      set: [blames.of, { file: "sandbox/host/circuit-breaker.ts", name: "mostSlates" }],
    },
    {
      what: "source maps, read on a separate thread",
      ofFunction: `${mapped.n} stacks at once; a map of ${map.size}`,
      ofRuntime: `${held.size} of maps, a heap of ${heap.n} MiB`,
      beyond: "the stack has the positions of the bundle",
      set: [held.of, mapped.of, ...inFolder("sandbox/positions/")],
      memory: heap.value * 2 ** 20,
    },
    {
      what: "stacks that wait for that thread",
      ofFunction: "ten seconds of its rate",
      ofRuntime: `${questions.size}, of ${accounts.n} functions`,
      beyond: "the oldest one of the function with the most is dropped",
      set: [questions.of, accounts.of],
      memory: questions.value,
    },
  ];
}

function calls(): Bound[] {
  const limit = (key: string) => constant("access/access.ts", "defaults", key);
  const [args, attempt, atOnce, waits, bytes] = [
    limit("argumentBytes"),
    limit("callsPerAttempt"),
    limit("callsAtOnce"),
    limit("callsWaiting"),
    limit("waitingBytes"),
  ];
  const [ofAttempt, underWay, argumentsWaiting, begun] = [
    constant("sandbox/host/guest-calls.ts", "mostOfAttempt"),
    constant("sandbox/host/guest-calls.ts", "mostUnderWay"),
    constant("sandbox/host/guest-calls.ts", "mostWaiting"),
    constant("sandbox/host/guest-calls.ts", "mostBegun"),
  ];
  const names = constant("sandbox/host/json-shape.ts", "mostOfNames");
  const applies = constant("access/applied.ts", "mostApplies");
  const large = constant("access/answer-reader.ts", "mostWaiting");
  const cached = constant("reads/reads.ts", "answerLimit");
  const fetched = constant("access/fetcher.ts", "responseLimit");
  const series = constant("access/event-series.ts", "mostSeries");
  const burst = constant("access/event-recorder.ts", "burst");
  const env = constant("access/env.ts", "objectLimit");
  return [
    {
      what: "calls of `ctx.kube` in progress",
      ofFunction: `${atOnce.n}; ${waits.n} more wait, of ${bytes.size}; ${attempt.n} per attempt, ${ofAttempt.n} of them at once`,
      ofRuntime: perFunctionOnly,
      beyond: "`TooManyRequestsError`",
      set: [args.of, ofAttempt.of],
    },
    {
      what: "arguments of started calls, and of waiting ones",
      ofFunction: `${begun.size}, ${argumentsWaiting.size}; ${args.size} per call, ${names.size} if it contains only names`,
      ofRuntime: perFunctionOnly,
      beyond: "`TooManyRequestsError`",
      set: [begun.of, argumentsWaiting.of, names.of],
    },
    {
      what: "answers in preparation, or not read yet",
      ofFunction: `${underWay.size}; one above 1 MiB at a time, ${large.n} wait`,
      ofRuntime: perFunctionOnly,
      beyond: "the others wait",
      set: [underWay.of, large.of],
    },
    {
      what: "one answer of `ctx.cache`, and one of `ctx.fetch`",
      ofFunction: `${cached.size}, ${fetched.size}`,
      ofRuntime: perFunctionOnly,
      beyond: "the call fails",
      set: [
        cached.of,
        fetched.of,
        ...inFile("access/fetcher.ts", "access/http-headers.ts", "access/content-coding.ts"),
      ],
    },
    {
      what: "applies with `skipUnchanged` that are remembered",
      ofFunction: runtimeAlone,
      ofRuntime: applies.n,
      beyond: "the oldest is forgotten, and sent again",
      set: [applies.of],
    },
    {
      what: "Kubernetes Events of a function",
      ofFunction: `${burst.n} at once; ${series.n} series remembered`,
      ofRuntime: perFunctionOnly,
      beyond: "dropped; the oldest series is forgotten",
      set: [burst.of, ...inFile("access/event-series.ts", "access/event-recorder.ts")],
    },
    {
      what: "one object that `env` refers to",
      ofFunction: env.size,
      ofRuntime: perFunctionOnly,
      beyond: "`WF_ACCESS_ENV`",
      set: [env.of],
    },
  ];
}

function said(): Bound[] {
  const [allLines, ofOne] = [
    constant("observe/function-log.ts", "mostInAll"),
    constant("observe/function-log.ts", "mostOfOne"),
  ];
  const kept = constant("observe/function-log.ts", "mostWarnings");
  const longest = constant("observe/function-log.ts", "longestWarning");
  const [burst, bytes] = [
    constant("observe/log-limit.ts", "lines", "burst"),
    constant("observe/log-limit.ts", "bytes", "burst"),
  ];
  const reader = constant("observe/log-writer.ts", "limits", "alarm");
  const warnings = constant("access/server-warnings.ts", "mostTexts");
  const warning = constant("kube/server-warning.ts", "longestText");
  const series = constant("observe/user-metrics.ts", "seriesLimit");
  const logged = constant("sandbox/host/guest-reports.ts", "maxLogged");
  return [
    {
      what: "log lines",
      ofFunction: `${burst.n} or ${bytes.size} at once; ${sizeOf(logged.value)} per attempt`,
      ofRuntime: perFunctionOnly,
      beyond: "dropped, and counted",
      set: [burst.of, bytes.of, logged.of, ...inFile("sandbox/host/guest-reports.ts"), ...inFile(...guests)],
    },
    {
      what: "log lines that wait for a reader",
      ofFunction: runtimeAlone,
      ofRuntime: reader.size,
      beyond: "handlers' lines are dropped first, and counted",
      set: [reader.of],
      memory: reader.value,
    },
    {
      what: "warnings of the API server that were logged",
      ofFunction: runtimeAlone,
      ofRuntime: `${warnings.n} of ${warning.n} characters`,
      beyond: "further ones are not logged",
      set: [warnings.of, warning.of],
      memory: warnings.value * warning.value * 2,
    },
    {
      what: "the last log lines, for `watchfire logs`",
      ofFunction: `${ofOne.size}, or an equal share`,
      ofRuntime: `${sizeOf(allLines.value)}`,
      beyond: "the oldest are dropped",
      set: [allLines.of, ofOne.of],
      memory: allLines.value,
    },
    {
      what: "the runtime's last warnings, for `watchfire support`",
      ofFunction: runtimeAlone,
      ofRuntime: `${kept.n} of ${longest.n} characters`,
      beyond: "the oldest are dropped, and longer ones cut",
      set: [kept.of, longest.of],
      memory: kept.value * longest.value * 2,
    },
    {
      what: "series of metrics",
      ofFunction: series.n,
      ofRuntime: perFunctionOnly,
      beyond: "not counted, with a warning",
      set: [series.of, ...inFile("observe/user-metrics.ts")],
    },
  ];
}

const guests = ["failure", "log", "outbox", "print", "run", "timers"].map((name) => `sandbox/guest/${name}.guest.ts`);

function manifests(): Bound[] {
  const file = constant("manifest/load.ts", "fileLimit");
  const list = constant("manifest/schema.ts", "listLimit");
  const map = constant("catalog/function-parts.ts", "mapLimit");
  const script = constant("bundle/limits.ts", "scriptLimit");
  const [expression, trigger] = [constant("cel/meter.ts", "expressionLimit"), constant("cel/meter.ts", "triggerLimit")];
  const [maps, one, functions] = [
    constant("catalog/held-config-maps.ts", "heldLimit"),
    constant("catalog/packed-function.ts", "configMapLimit"),
    constant("catalog/deployed-index.ts", "functionLimit"),
  ];
  const [sets, manifest] = [
    constant("catalog/cluster-source.ts", "mostSets"),
    constant("catalog/held-config-maps.ts", "manifestLimit"),
  ];
  const [held, code, most, groups] = ["heldBytes", "codeBytes", "functions", "groups"].map((key) =>
    constant("host/function-sources.ts", "sharedLimits", key),
  ) as [
    ReturnType<typeof constant>,
    ReturnType<typeof constant>,
    ReturnType<typeof constant>,
    ReturnType<typeof constant>,
  ];
  const revisions = constant("catalog/deploy/history.ts", "mostRevisions");
  const kept = constant("catalog/deploy/history.ts", "keptLimit");
  const levers = constant("control/paused-sets.ts", "mostSets");
  const records = constant("catalog/deploy/revision-records.ts", "mostKept");
  return [
    {
      what: "a manifest",
      ofFunction: `${file.size}, lists of ${list.n}`,
      ofRuntime: perFunctionOnly,
      beyond: "refused",
      set: [file.of, ...inFolder("manifest/")],
    },
    {
      what: "a condition",
      ofFunction: `a cost of ${expression.n}, and ${trigger.n} per trigger`,
      ofRuntime: "half of the event loop's time, shared",
      beyond: "it has no value; it waits (`Throttled`)",
      set: [expression.of, trigger.of, ...inFolder("cel/")],
    },
    {
      what: "deployed functions, packed in ConfigMaps",
      ofFunction: one.size,
      ofRuntime: `${maps.size}, ${functions.n} functions`,
      beyond: "the set is not loaded",
      set: [maps.of, one.of, functions.of, map.of],
      memory: maps.value,
    },
    {
      what: "deployed functions of a namespace that shares the runtime",
      ofFunction: one.size,
      ofRuntime: `for each namespace ${most.n} functions (\`sets.limits\`), ${held.size} of ConfigMaps, ${code.size} of code, ${sets.n} sets, ${groups.n} trust groups; ${manifest.size} for a manifest`,
      beyond: "`WF_DEPLOYED_LIMIT`: the set's version before it runs on",
      set: [held.of, sets.of, manifest.of],
    },
    {
      what: "earlier revisions of a deployed set, in ConfigMaps that the runtime does not read",
      ofFunction: runtimeAlone,
      ofRuntime: `${revisions.n} and ${kept.size} for each set`,
      beyond: "the oldest are deleted",
      set: [revisions.of, kept.of],
    },
    {
      what: "FunctionSets, and the records of their revisions",
      ofFunction: runtimeAlone,
      ofRuntime: `for each namespace ${levers.n} objects and ${records.n} records`,
      beyond: "further objects pause nothing; a record is read again",
      set: [levers.of, records.of],
    },
    {
      what: "the code of running functions",
      ofFunction: `${script.size} of script`,
      ofRuntime: perFunctionOnly,
      beyond: "",
      set: [script.of, ...inFile("catalog/built-folder.ts")],
    },
  ];
}
