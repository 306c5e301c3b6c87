import { sharesOf } from "../../../runtime/journal/sqlite/disk-room.ts";
import { type Bound, constant, perFunctionOnly, runtimeAlone, sizeOf } from "./bound.ts";
import { guestRows } from "./guest-rows.ts";
import { historyRows } from "./history-rows.ts";

/** The chart's defaults, in bytes. */
export interface Defaults {
  readonly memory: number;
  readonly volume: number;
}

/** Measured: `npm run soak`, 100,000 events, 2026-11-21. */
const idleMemory = 123 * 2 ** 20;

/** Measured: 1,000 watches of the embedded cluster took 188 MB, 2026-11-27. */
const watchMemory = 190 * 2 ** 10;

/** Every bound, in the order in which an event meets them. */
export function bounds({ memory, volume }: Defaults): readonly Bound[] {
  const disk = sharesOf(volume);
  // Node takes half of a container's memory for its heap, and waiting events a quarter of that.
  const room = memory / 2 / 4;
  return [
    {
      what: "the runtime itself, with some functions",
      ofFunction: runtimeAlone,
      ofRuntime: `${sizeOf(idleMemory)}, measured`,
      beyond: "",
      set: [],
      memory: idleMemory,
    },
    ...received(),
    ...waiting(room, disk.spill),
    ...keys(),
    ...records(disk),
    ...historyRows(),
    ...guestRows(),
    ...asked(),
  ];
}

type Named = ReturnType<typeof constant>;

function received(): Bound[] {
  const event = constant("informer/scan/value-reader.ts", "valueLimit");
  const [changes, bytes, lists] = [
    constant("informer/list/paged-list.ts", "heldLimit"),
    constant("informer/list/paged-list.ts", "heldBytesLimit"),
    constant("informer/list/list-semaphore.ts", "defaultSlots"),
  ];
  const counted = constant("informer/fanout/skip-set.ts", "mostCounted");
  const [leftOut, pieces, envelope] = [
    constant("informer/fanout/skip-set.ts", "most"),
    constant("informer/scan/value-reader.ts", "piecesLimit"),
    constant("informer/scan/list-splitter.ts", "envelopeLimit"),
  ];
  const answer = constant("kube/http-transport.ts", "jsonLimit");
  const objects = constant("host/components.ts", "cacheLimit");
  const entries = constant("manifest/schema.ts", "mostState");
  const values = constant("reads/field-index.ts", "mostValues");
  const [named, watches, few] = [
    constant("manifest/rules.ts", "mostWatches"),
    constant("host/watch-room.ts", "mostWatches"),
    constant("host/watch-room.ts", "fewWatches"),
  ];
  const rights = constant("manifest/rules.ts", "mostRights");
  return [
    {
      what: "rights of a manifest's permissions",
      ofFunction: rights.n,
      ofRuntime: perFunctionOnly,
      beyond: "the manifest is refused",
      set: [rights.of],
    },
    {
      what: "watches of the manifests' triggers and `reads`",
      ofFunction: named.n,
      ofRuntime: `${watches.n} different ones; a function with ${few.n} or fewer always has them`,
      beyond: "the manifest is refused; `WF_RUNTIME_WATCHES`: the function waits",
      set: [named.of, watches.of, few.of],
      memory: watches.value * watchMemory,
    },
    {
      what: "one object of a watch or a list",
      ofFunction: event.size,
      ofRuntime: perFunctionOnly,
      beyond: "its source is `Degraded`",
      set: [event.of, pieces.of],
    },
    {
      what: "fields of a list outside of its objects",
      ofFunction: envelope.size,
      ofRuntime: perFunctionOnly,
      beyond: "the list fails, and is retried",
      set: [envelope.of],
    },
    {
      what: "concurrent lists",
      ofFunction: runtimeAlone,
      ofRuntime: lists.n,
      beyond: "the others wait for their turn",
      set: [lists.of],
    },
    {
      what: "live changes that arrive before their list's end",
      ofFunction: `${changes.n} or ${bytes.size} of a list`,
      ofRuntime: `those of ${lists.n} lists`,
      beyond: "the list is restarted",
      set: [changes.of, bytes.of],
      memory: lists.value * bytes.value,
    },
    {
      what: "namespaces for which a source counts unwanted changes",
      ofFunction: runtimeAlone,
      ofRuntime: `${counted.n} a source, ${leftOut.n} left out`,
      beyond: "not counted",
      set: [counted.of, leftOut.of],
    },
    {
      what: "one answer of the API server to the runtime itself",
      ofFunction: runtimeAlone,
      ofRuntime: answer.size,
      beyond: "the request fails",
      set: [answer.of],
    },
    {
      what: "cached objects (`reads`)",
      ofFunction: "its `resources.cache`",
      ofRuntime: `\`--cache-limit\`, ${objects.size}`,
      beyond: "`WF_READS_TOO_LARGE`, `WF_READS_SHARE`: the function furthest beyond an equal share waits",
      set: [objects.of],
      memory: objects.value,
    },
    {
      what: "entries of a function's own state (`ctx.state`)",
      ofFunction: `its \`resources.state\`, at most ${entries.size}`,
      ofRuntime: perFunctionOnly,
      beyond: "`WF_STATE_FULL`: the `set` is refused",
      set: [entries.of],
    },
    {
      what: "values of one object in an index of `reads`",
      ofFunction: values.n,
      ofRuntime: perFunctionOnly,
      beyond: "`WF_READS_INDEX`: a list by that index fails",
      set: [values.of],
    },
  ];
}

function waiting(budget: number, spill: number): Bound[] {
  const [events, bytes] = [
    constant("engine/work/spill.ts", "defaultMemoryLimit", "events"),
    constant("engine/work/spill.ts", "defaultMemoryLimit", "bytes"),
  ];
  const stubs = constant("engine/work/spill.ts", "stubLimit");
  const chunks = constant("engine/work/budget.ts", "mostBytes");
  const [way, turns] = [
    constant("engine/work/fair-scheduler.ts", "mostUnderWay"),
    constant("engine/work/fair-scheduler.ts", "mostWaiting"),
  ];
  const [ahead, brief] = [
    constant("engine/work/fair-scheduler.ts", "most"),
    constant("engine/work/fair-scheduler.ts", "mostBrief"),
  ];
  const quiet = constant("engine/work/retry.ts", "mostTimes");
  const batch = constant("engine/batch/batching-runner.ts", "mostBytes");
  const digests = constant("engine/filter/changed-fields.ts", "mostRemembered");
  const patterns = constant("cel/regex.ts", "mostKept");
  const missed = constant("engine/schedule/scheduled-trigger.ts", "mostMissed");
  const [kept, key, message] = ["mostKept", "longestKey", "longestMessage"].map((name) =>
    constant("engine/history/history.ts", name),
  ) as [Named, Named, Named];
  return [
    {
      what: "events that wait in memory",
      ofFunction: `${events.n}, or ${bytes.size} of bodies`,
      ofRuntime: `a quarter of the heap, ${sizeOf(budget)}. Beyond it, only functions with less than an equal share may add events, until it is twice that`,
      beyond: "events are spilled to disk; without a disk, sources wait",
      set: [events.of],
      memory: 2 * budget,
    },
    {
      what: "events that wait on disk",
      ofFunction: "an equal share of all functions'",
      ofRuntime: `an eighth of the disk, ${sizeOf(spill)}; at most twice that, as above`,
      beyond: "one object's backlog collapses; then the function is suspended (`Backlogged`)",
      set: [{ file: "journal/sqlite/disk-room.ts", name: "sharesOf" }],
      disk: 2 * spill,
    },
    {
      what: "object queues whose first event is only on disk",
      ofFunction: stubs.n,
      ofRuntime: perFunctionOnly,
      beyond: "events go to disk",
      set: [stubs.of],
    },
    {
      what: "socket buffers that waiting events keep alive",
      ofFunction: chunks.size,
      ofRuntime: perFunctionOnly,
      beyond: "bodies are copied out of them",
      set: [chunks.of],
    },
    {
      what: "prefetched events of fast handlers",
      ofFunction: `its \`concurrency\` and ${ahead.n}`,
      ofRuntime: `${way.n} before functions take turns; ${turns.n} object queues wait`,
      beyond: "the others wait for their turn",
      set: [ahead.of, brief.of, way.of, turns.of],
    },
    {
      what: "size of a batch's bodies",
      ofFunction: `${batch.size} for each of its \`concurrency\``,
      ofRuntime: perFunctionOnly,
      beyond: "the batch ends",
      set: [batch.of],
    },
    {
      what: "a debounced object's wait",
      ofFunction: `${quiet.n} times its \`debounce\``,
      ofRuntime: perFunctionOnly,
      beyond: "the event is handled",
      set: [quiet.of],
    },
    {
      what: "missed runs of a schedule",
      ofFunction: `${missed.n} a schedule`,
      ofRuntime: perFunctionOnly,
      beyond: "the older ones are dropped",
      set: [missed.of],
    },
    {
      what: "digests of `changedFields`",
      ofFunction: `${digests.n} a trigger`,
      ofRuntime: perFunctionOnly,
      beyond: "the oldest is computed again",
      set: [digests.of],
    },
    {
      what: "compiled patterns of conditions",
      ofFunction: runtimeAlone,
      ofRuntime: patterns.n,
      beyond: "the oldest is compiled again",
      set: [patterns.of],
    },
    {
      what: "history for `explain`",
      ofFunction: `${kept.n} of each kind; ${key.n} characters of a key and ${message.n} of a message`,
      ofRuntime: perFunctionOnly,
      beyond: "the oldest is dropped",
      set: [kept.of, key.of, message.of],
    },
  ];
}

function keys(): Bound[] {
  const [none, unknown] = [
    constant("engine/work/key-queue.ts", "mostWithoutObject"),
    constant("engine/work/key-queue.ts", "mostUnknown"),
  ];
  const bytes = constant("engine/work/spill.ts", "mostKeyBytes");
  const ready = constant("engine/work/key-queue.ts", "mostReady");
  const [causes, due] = [
    constant("engine/work/key-lane.ts", "mostCauses"),
    constant("engine/work/due-lanes.ts", "mostInATurn"),
  ];
  const rests = constant("engine/work/key-backoff.ts", "maxEntries");
  const woken = constant("engine/filter/key-rule.ts", "mostKeys");
  const [told, toldAtOnce] = [
    constant("engine/work/waiting-keys.ts", "mostBytes"),
    constant("engine/work/waiting-keys.ts", "mostBytesAtOnce"),
  ];
  return [
    {
      what: "keys of a reconciler without an object, with their timers (`requeueAfter`)",
      ofFunction: `${none.n}, or ${bytes.size}`,
      ofRuntime: "part of the memory and the disk of waiting events",
      beyond: "`KeysFull`: changes of the function wait",
      set: [none.of, bytes.of],
    },
    {
      what: "keys whose object is not known yet",
      ofFunction: unknown.n,
      ofRuntime: perFunctionOnly,
      beyond: "`KeysFull`",
      set: [unknown.of],
    },
    {
      what: "keys that are ready to run",
      ofFunction: ready.n,
      ofRuntime: perFunctionOnly,
      beyond: "changes of the function wait",
      set: [ready.of],
    },
    {
      what: "keys of objects, with their timers",
      ofFunction: "one per object",
      ofRuntime: perFunctionOnly,
      beyond: "",
      set: [],
    },
    {
      what: "timers that fire together",
      ofFunction: `${due.n} in a turn of the event loop`,
      ofRuntime: perFunctionOnly,
      beyond: "the others fire in the next turn",
      set: [due.of],
    },
    {
      what: "failures with a backoff",
      ofFunction: `${rests.n} keys`,
      ofRuntime: perFunctionOnly,
      beyond: "the oldest failure is forgotten",
      set: [rests.of],
    },
    {
      what: "keys that one change wakes by `key`",
      ofFunction: woken.n,
      ofRuntime: perFunctionOnly,
      beyond: "the change wakes no key, and counts as a condition error",
      set: [woken.of],
    },
    {
      what: "causes that are reported to a run",
      ofFunction: `${causes.n} a key`,
      ofRuntime: perFunctionOnly,
      beyond: "the oldest are dropped, and the run is notified",
      set: [causes.of],
    },
    {
      what: "bodies written when a function stops reconciling",
      ofFunction: `${told.size}, ${toldAtOnce.size} with one commit`,
      ofRuntime: perFunctionOnly,
      beyond: "the others are read later",
      set: [told.of, toldAtOnce.of],
    },
  ];
}

function records({ log, letters }: ReturnType<typeof sharesOf>): Bound[] {
  const rows = constant("engine/commit/commit-share.ts", "mostRows");
  const [eager, congestedRows, congested] = [
    constant("engine/commit/commits.ts", "eagerBytes"),
    constant("engine/commit/commits.ts", "congestedRows"),
    constant("engine/commit/commits.ts", "congestedBytes"),
  ];
  const bodies = constant("engine/commit/deferred-rows.ts", "mostBytes");
  const resting = constant("engine/commit/deferred-rows.ts", "mostRows");
  const young = constant("engine/commit/open-rows.ts", "mostYoung");
  const logged = constant("journal/sqlite/known.ts", "mostLoggedRows");
  const mostLog = constant("journal/sqlite/disk-room.ts", "mostLog");
  const [slot, secretsLog, secretsBodies, spill, secretLetters, object] = [
    constant("journal/secrets/journal.ts", "slotBytes"),
    constant("journal/secrets/journal.ts", "logBytes"),
    constant("journal/secrets/journal.ts", "bodyBytes"),
    constant("journal/secrets/journal.ts", "spillBytes"),
    constant("journal/secrets/journal.ts", "letterBytes"),
    constant("journal/secrets/secrets.ts", "objectLimit"),
  ] as const;
  const room = constant("migrate/open-journal.ts", "roomOfAll");
  const [least, natsRoom, packed] = [
    constant("migrate/open-journal.ts", "leastRoom"),
    constant("journal/nats/journal.ts", "defaultRoom"),
    constant("journal/memory/packing.ts", "plainLimit"),
  ];
  return [
    {
      what: "rows of a reconciler in one commit",
      ofFunction: `${rows.n}, plus those of one change`,
      ofRuntime: perFunctionOnly,
      beyond: "its next changes and runs wait",
      set: [rows.of],
    },
    {
      what: "data that waits for a commit",
      ofFunction: runtimeAlone,
      ofRuntime: `${congested.size} of bodies, or ${congestedRows.n} rows while the store fails`,
      beyond: "sources wait",
      set: [eager.of, congestedRows.of, congested.of],
      memory: congested.value,
    },
    {
      what: "last bodies of objects that are not written yet",
      ofFunction: runtimeAlone,
      ofRuntime: bodies.size,
      beyond: "the next is recorded at once",
      set: [bodies.of],
      memory: bodies.value,
    },
    // About 60 bytes each, as the comment in the code says.
    {
      what: "deferred rows that are not written yet",
      ofFunction: runtimeAlone,
      ofRuntime: resting.n,
      beyond: "the next is recorded at once",
      set: [resting.of],
      memory: 60 * resting.value,
    },
    {
      what: "rows of started attempts",
      ofFunction: "one per attempt",
      ofRuntime: `the newest ${young.n} are searched`,
      beyond: "",
      set: [young.of],
    },
    {
      what: "dead letters on a volume",
      ofFunction: "its `delivery.deadLetters`",
      ofRuntime: `an eighth of the disk, ${sizeOf(letters)}`,
      beyond: "the function with the most loses its oldest body",
      set: [{ file: "journal/sqlite/disk-room.ts", name: "sharesOf" }],
      disk: letters,
    },
    {
      what: "SQLite's write-ahead log",
      ofFunction: runtimeAlone,
      ofRuntime: `an eighth of the disk, at most ${mostLog.size}; a larger commit temporarily`,
      beyond: "it is copied into the file",
      set: [mostLog.of, logged.of],
      disk: log,
    },
    {
      what: "known objects on a volume",
      ofFunction: "one row per trigger and object",
      ofRuntime: "limited only by the number of triggers and objects",
      beyond: "`WF_CHECKPOINT_WRITE_FAILED`: no attempt starts, and checkpoints do not advance",
      set: [],
    },
    {
      what: "last bodies of known objects on a volume",
      ofFunction: "one per trigger and object",
      ofRuntime: "until the store fills half of the disk",
      beyond: "no body is stored: `oldObject` is absent, and a deletion has metadata alone",
      set: [],
    },
    {
      what: "checkpoints in Secrets, with events and dead letters",
      ofFunction: "events: a quarter",
      ofRuntime: `three of ${slot.size}; events ${spill.size}, dead letters ${secretLetters.size}, bodies ${secretsBodies.size} in memory`,
      beyond: "`WF_CHECKPOINT_FULL`",
      set: [slot.of, secretsLog.of, secretsBodies.of, spill.of, secretLetters.of, object.of],
    },
    {
      what: "a slot's events and dead letters on NATS, and the same size of bodies in memory",
      ofFunction: "events: an eighth",
      ofRuntime: `${room.size} over all slots, at least ${least.size} per slot; without slots ${natsRoom.size}`,
      beyond: "as in Secrets",
      set: [room.of, least.of, natsRoom.of],
    },
    {
      what: "a compressed record, when it is decompressed",
      ofFunction: runtimeAlone,
      ofRuntime: packed.size,
      beyond: "it cannot be read",
      set: [packed.of],
    },
  ];
}

function asked(): Bound[] {
  const [recordings, one, waits] = [
    constant("control/record/recorder.ts", "mostRecordings"),
    constant("control/record/recorder.ts", "mostOfOne"),
    constant("control/record/recorder.ts", "mostWaiting"),
  ];
  const [jobs, fleetJobs] = [
    constant("control/redeliver/jobs.ts", "mostKept"),
    constant("console/shard-operations.ts", "mostJobs"),
  ];
  const connections = constant("observe/connections.ts", "most");
  const answers = constant("observe/under-way.ts", "most");
  const tokens = constant("control/access/account-reviews.ts", "mostTokens");
  const rights = constant("control/access/account-reviews.ts", "mostAnswers");
  const events = constant("control/function-status/events-of-functions.ts", "mostWaiting");
  const [codes, sessions, streams] = [
    constant("console/access.ts", "mostCodes"),
    constant("console/access.ts", "mostSessions"),
    constant("console/app.ts", "mostStreams"),
  ];
  const [samples, plotted] = [
    constant("console/metric-series.ts", "mostSamples"),
    constant("console/metric-series.ts", "mostFunctions"),
  ];
  const [rated, changes, peers, answer] = [
    constant("console/metric-series.ts", "mostSources"),
    constant("control/access/audit-log.ts", "mostRecent"),
    constant("console/fleet-answers.ts", "mostPeers"),
    constant("console/fleet-link.ts", "mostAnswerBytes"),
  ];
  return [
    {
      what: "recordings of `watchfire record`",
      ofFunction: runtimeAlone,
      ofRuntime: `${recordings.n}, of ${waits.size} each`,
      beyond: `refused; an event of more than ${one.size} is omitted`,
      set: [recordings.of, one.of, waits.of],
      memory: recordings.value * waits.value,
    },
    {
      what: "pending redeliveries that are tracked",
      ofFunction: runtimeAlone,
      ofRuntime: `${jobs.n}, and ${fleetJobs.n} that ask several replicas`,
      beyond: "the oldest is no longer tracked, but continues",
      set: [jobs.of, fleetJobs.of],
    },
    {
      what: "connections of the endpoints, and answers in progress",
      ofFunction: runtimeAlone,
      ofRuntime: `${connections.n}, ${answers.n}`,
      beyond: "the longest idle connection is closed; the request is refused",
      set: [connections.of, answers.of],
    },
    {
      what: "callers and rights that were reviewed, for a minute",
      ofFunction: runtimeAlone,
      ofRuntime: `${tokens.n}, ${rights.n}`,
      beyond: "the oldest that was not accepted is reviewed again",
      set: [tokens.of, rights.of],
    },
    {
      what: "Events about changes that wait to be written",
      ofFunction: runtimeAlone,
      ofRuntime: events.n,
      beyond: "left out; the log has the change",
      set: [events.of],
    },
    {
      what: "login codes, sessions and open pages of the console",
      ofFunction: runtimeAlone,
      ofRuntime: `${codes.n}, ${sessions.n}, ${streams.n}`,
      beyond: "the oldest ends; refused",
      set: [codes.of, sessions.of, streams.of],
    },
    {
      what: "samples for the console's plots",
      ofFunction: `${samples.n}, one each 10 seconds`,
      ofRuntime: `of ${plotted.n} functions`,
      beyond: "the oldest are dropped; further functions are in the sum alone",
      set: [samples.of, plotted.of],
    },
    {
      what: "sources whose rate the console shows, and changes that it lists",
      ofFunction: runtimeAlone,
      ofRuntime: `${rated.n}, ${changes.n}`,
      beyond: "without a rate; the oldest change is dropped, and stays in the log",
      set: [rated.of, changes.of],
    },
    {
      what: "replicas of a fleet that one asks for a page, and the answer of each",
      ofFunction: runtimeAlone,
      ofRuntime: `${peers.n}, ${answer.size}`,
      beyond: "named as silent",
      set: [peers.of, answer.of],
    },
  ];
}
