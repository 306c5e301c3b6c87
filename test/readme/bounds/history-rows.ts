import { type Bound, constant, inFile, runtimeAlone, sizeOf } from "./bound.ts";

/** The default of `--history-size`, in bytes. */
const historySize = 64 * 2 ** 20;
/** The thread of SQLite with its memory: 8 MB, and the cache of its pages. */
const threadMemory = 10 * 2 ** 20;

/** The bounds of the history of runs, and of traces. */
export function historyRows(): Bound[] {
  const [collected, characters, running, inMemory, lines] = [
    constant("history/run-history.ts", "mostCollected"),
    constant("history/run-history.ts", "mostCharacters"),
    constant("history/run-history.ts", "mostRunning"),
    constant("history/run-history.ts", "mostInMemory"),
    constant("history/run-history.ts", "mostLines"),
  ];
  const [changes, repeated] = [
    constant("history/run-history.ts", "mostWaitingChanges"),
    constant("history/run-history.ts", "mostRepeated"),
  ];
  const lineCharacters = constant("history/run-history.ts", "mostLineCharacters");
  const log = constant("history/history-file.ts", "mostLogBytes");
  const [quiet, least] = [
    constant("history/noteworthy.ts", "mostQuiet"),
    constant("history/noteworthy.ts", "leastOfEach"),
  ];
  const taken = constant("observe/run-log.ts", "mostQuiet");
  const [bodies, newBodies] = [
    constant("history/recent-bodies.ts", "mostBytes"),
    constant("observe/run-log.ts", "mostBodyBytes"),
  ];
  const calls = constant("access/observer.ts", "mostListedCalls");
  const [stack, target] = [
    constant("history/history-row.ts", "mostStack"),
    constant("access/call-target.ts", "mostCharacters"),
  ];
  const [spans, batch, text] = [
    constant("observe/traces/exporter.ts", "mostWaiting"),
    constant("observe/traces/exporter.ts", "mostSent"),
    constant("observe/traces/exporter.ts", "mostText"),
  ];
  const open = constant("observe/traces/tracer.ts", "mostOpen");
  return [
    {
      what: "spans that wait for the collector of traces, if one is named",
      ofFunction: `of ${calls.n} calls an attempt`,
      ofRuntime: `${spans.n}, and ${batch.n} on their way; each text of ${text.n} characters; ${open.n} events between two attempts`,
      beyond: "spans are dropped, and counted; the oldest event's next attempt is in another span of the event",
      set: [spans.of, batch.of, text.of, open.of],
    },
    {
      what: "history of runs and log lines",
      ofFunction: "the largest one's oldest rows are deleted first",
      ofRuntime: `\`--history-size\`, ${sizeOf(historySize)} or a sixteenth of the disk, and \`--history-age\`; ${inMemory.size} without a disk`,
      beyond: "the oldest are deleted; `WF_HISTORY_BROKEN` on a full disk",
      set: [log.of, inMemory.of],
      disk: historySize,
      memory: threadMemory,
    },
    {
      what: "runs and log lines that wait to be written there",
      ofFunction: `${taken.n} quiet runs in half a second; at least ${least.n} are written`,
      ofRuntime: `${collected.n} runs and ${characters.size} of lines; ${quiet.n} quiet runs in half a second; ${changes.n} lines of who changed what; ${repeated.n} redelivered runs are looked up`,
      beyond: "dropped, and counted",
      set: [collected.of, characters.of, quiet.of, least.of, taken.of, changes.of, repeated.of],
      memory: 2 * characters.value,
    },
    {
      what: "calls of a run in the history, and its error",
      ofFunction: `${calls.n} a run, each of ${target.n} characters; ${stack.n} characters of a stack`,
      ofRuntime: `of ${running.n} running attempts`,
      beyond: "calls are counted, texts are cut",
      set: [calls.of, target.of, running.of, ...inFile("history/history-row.ts")],
    },
    {
      what: "objects of the last runs, for the console",
      ofFunction: "its failures have a separate share; the largest share's oldest are dropped first",
      ofRuntime: `${bodies.size}, and ${newBodies.size} in half a second`,
      beyond: "not shown on the run's page",
      set: [bodies.of, newBodies.of],
      memory: bodies.value + newBodies.value,
    },
    {
      what: "log lines of one answer",
      ofFunction: runtimeAlone,
      ofRuntime: `${lines.n} of the history, and ${lineCharacters.size}`,
      beyond: "the newest are shown",
      set: [lines.of, lineCharacters.of],
    },
  ];
}
