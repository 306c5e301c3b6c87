import type { Redactor } from "../access/redactor.ts";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { resourceVersion } from "../base/resource-version.ts";
import { suggest } from "../base/suggest.ts";
import type { Recorder } from "../control/record/recorder.ts";
import { anyShard, Jobs } from "../control/redeliver/jobs.ts";
import { type EarlierRun, Redeliverer } from "../control/redeliver/redeliverer.ts";
import type { PastRun } from "../engine/history/history.ts";
import { describeHistoryRun, historyQuestion, matchesFilters } from "../history/run-answer.ts";
import type { RunHistory } from "../history/run-history.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Schedule, Trigger } from "../manifest/function.ts";
import type { ControlApi, PauseAnswer, RunFilters, RunRow } from "../observe/control-api.ts";
import type { FunctionLog, KeptLine } from "../observe/function-log.ts";
import type { Logger } from "../observe/log.ts";
import type { ActiveComponents } from "./components.ts";
import type { LiveFunction } from "./live-function.ts";

/** The types of events that have an object. */
const changeTypes = ["Added", "Modified", "Deleted"] as const;

/** The log line of a change, and its answer. */
const words = {
  pause: {
    logged: "function paused",
    done: "is paused: its events wait, in order",
    idle: "was paused by a command before",
  },
  resume: { logged: "function resumed", done: "goes on", idle: "was not paused" },
} as const;

/** The filters of a question without any. */
const noFilters: RunFilters = { limit: 200 };

export interface ControlApiParts {
  /**
   * Returns whatever runs the function here: at least one item, one for each shard.
   * @throws WatchfireError WF_RUNTIME_NO_FUNCTION, WF_LEASE_STANDBY
   */
  readonly acting: (name: string) => readonly Acting[];
  /** Describes where the function's other shards are. Returns `undefined` without such shards. */
  readonly elsewhere?: (name: string) => string | undefined;
  /** The names of the functions here. */
  readonly names: () => readonly string[];
  /** `undefined`: runs are those that the engine has in memory. */
  readonly history: Pick<RunHistory, "isOn" | "find" | "linesAfter"> | undefined;
  readonly recorder: Pick<Recorder, "ask">;
  readonly redactor: Pick<Redactor, "redact">;
  readonly transport: KubeTransport;
  /** `undefined`: no lines are kept. */
  readonly functionLog: FunctionLog | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info">;
}

/** Whatever runs a function, or a shard of it. */
export interface Acting
  extends Pick<ActiveComponents, "pauses" | "dispatcher" | "discovery" | "deadLetters" | "watches" | "redactor"> {
  /** Returns the function if it was started. */
  readonly live: (name: string) => Pick<LiveFunction, "manifest" | "specOf"> | undefined;
}

/** Creates the operations on one function that the endpoints offer to commands. */
export function createControlApi(parts: ControlApiParts): ControlApi {
  const { recorder, acting: of, elsewhere = () => undefined, redactor, functionLog, transport, clock, log } = parts;
  const { history, names } = parts;
  /** Lower than the number of any line of this process. */
  const startedAt = clock.now() * 1000;
  const jobs = new Jobs(clock);
  /** Adds where the other shards are to an answer about those here. */
  const withElsewhere = <T extends object>(
    name: string | undefined,
    answer: T,
  ): T & { readonly elsewhere?: string } => {
    const others = name === undefined ? undefined : elsewhere(name);
    return others === undefined ? answer : { ...answer, elsewhere: others };
  };
  /** Applies a change to every shard here, and describes the result. */
  const change = async (
    name: string,
    act: (pauses: Acting["pauses"]) => Promise<boolean>,
    { logged, done, idle }: { readonly logged: string; readonly done: string; readonly idle: string },
    isPart: boolean,
  ): Promise<PauseAnswer> => {
    const changes = await Promise.all(of(name).map(({ pauses }) => act(pauses)));
    const changed = changes.includes(true);
    if (changed) log.info({ function: name }, logged);
    const says = `${name} ${changed ? done : idle}`;
    const others = isPart ? undefined : elsewhere(name);
    return { changed, says: others === undefined ? says : `${says}; this applies only here: ${others}` };
  };
  /** Passes for a function that is here, and for one that is gone and has runs in the history. */
  const assertKnown = async (name: string): Promise<void> => {
    try {
      of(name);
    } catch (error) {
      const isGone = error instanceof WatchfireError && error.code === "WF_RUNTIME_NO_FUNCTION";
      const found = isGone && history?.isOn ? await history.find({ function: name, limit: 1 }) : [];
      if (found.length === 0) throw error;
    }
  };
  /** Returns the attempts of a function that the engine has in memory, newest first. */
  const remembered = (name: string): RunRow[] => {
    const here = of(name);
    const runs = here.flatMap(({ dispatcher }) => [...(dispatcher.loaded(name)?.runs ?? [])]);
    if (here.length > 1) runs.sort((a, b) => b.at - a.at);
    const triggers = here.flatMap(({ live }) => live(name)?.manifest.triggers ?? []);
    const kinds = new Map(triggers.map((trigger) => [trigger.name, trigger.kind]));
    return runs.map((run) => describeRun(name, run, kinds, (text) => redactor.redact(name, text)));
  };
  /** The same; empty for a function that other replicas have. */
  const rememberedHere = (name: string): RunRow[] => {
    try {
      return remembered(name);
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      return [];
    }
  };
  /** Returns the lines in memory, and those of the history that are no longer there. */
  const linesOf = async (name: string | undefined, after: number, since: number): Promise<KeptLine[]> => {
    const last = functionLog?.after(name, after) ?? [];
    // A follower of this process has all lines before.
    const past = history?.isOn && after < startedAt ? await history.linesAfter(name, after, since) : [];
    const numbers = new Set(last.map(({ number }) => number));
    const lines = [...past.filter(({ number }) => !numbers.has(number)), ...last];
    return lines.filter(({ number }) => number >= since * 1000).sort((a, b) => a.number - b.number);
  };
  return {
    pause: (name, isPart = false) => change(name, (pauses) => pauses.pause(name), words.pause, isPart),
    resume: (name, isPart = false) => change(name, (pauses) => pauses.resume(name), words.resume, isPart),
    runs: async (name, filters = noFilters) => {
      if (name !== undefined) await assertKnown(name);
      if (history?.isOn) {
        const found = await history.find(historyQuestion(name, filters));
        if (history.isOn) return withElsewhere(name, { runs: found.map(describeHistoryRun) });
      }
      const rows = name === undefined ? names().flatMap(rememberedHere) : remembered(name);
      if (name === undefined) rows.sort((a, b) => (a.at < b.at ? 1 : -1));
      return withElsewhere(name, { runs: rows.filter((run) => matchesFilters(run, filters)).slice(0, filters.limit) });
    },
    logs: async (name, after, waitMs, since = 0) => {
      if (name !== undefined) await assertKnown(name);
      const lines = await linesOf(name, after, since);
      if (lines.length > 0 || waitMs === 0 || !functionLog) return withElsewhere(name, { lines });
      const late = new AbortController();
      const timer = clock.after(waitMs, () => late.abort());
      await functionLog.another(name, late.signal);
      timer.cancel();
      return withElsewhere(name, { lines: await linesOf(name, after, since) });
    },
    record: async (name, question) => {
      of(name);
      if (!("recording" in question)) log.info({ function: name, ...question }, "recording requested");
      return withElsewhere(name, await recorder.ask(name, question));
    },
    redeliver: async (name, question, isPart = false) => {
      const here = of(name);
      if ("job" in question) return withElsewhere(name, await jobs.ask(name, question.job));
      const trigger = "trigger" in question && !("schedule" in question) ? question.trigger : undefined;
      const shards = here.map(({ dispatcher, discovery, deadLetters, live }) => {
        const dispatch = dispatcher.loaded(name);
        const found = live(name);
        if (!dispatch || !found) {
          throw new WatchfireError("WF_RUNTIME_NOT_REDELIVERED", { what: "the function is not loaded", actual: name });
        }
        const triggers = chosen(name, found.manifest.triggers, trigger);
        const sourceOf = (of: Trigger, namespace: string) => found.specOf(of, namespace);
        const redeliverer = new Redeliverer({ transport, clock, discovery, deadLetters });
        return { redeliverer, target: { name, dispatch, triggers, sourceOf }, schedules: found.manifest.schedules };
      });
      const others = isPart ? undefined : elsewhere(name);
      const { schedule, ...fields } = { schedule: undefined, ...question };
      log.info(
        { function: name, ...fields },
        schedule ? "a run of the schedule was requested" : "redelivery requested",
      );
      if ("schedule" in question) {
        const run = ({ redeliverer, target, schedules }: (typeof shards)[number]) =>
          redeliverer.schedule(target, scheduleOf(name, schedules, question.trigger));
        return anyShard(shards, run, others);
      }
      if ("run" in question) {
        const earlier = await earlierRun(history, name, question.run);
        const run = ({ redeliverer, target }: (typeof shards)[number]) =>
          redeliverer.run(target, question.run, earlier);
        return anyShard(shards, run, others);
      }
      if ("object" in question) {
        return anyShard(shards, ({ redeliverer, target }) => redeliverer.object(target, question.object), others);
      }
      const begun = await jobs.begin(name, async (tally) => {
        for (const { redeliverer, target } of shards) await redeliverer.all(target, tally);
      });
      return withElsewhere(name, begun);
    },
  };
}

/** Returns the triggers to use. @throws WatchfireError WF_RUNTIME_NOT_REDELIVERED if the function does not have `trigger` */
function chosen(name: string, triggers: readonly Trigger[], trigger: string | undefined): readonly Trigger[] {
  if (trigger === undefined) return triggers;
  const found = triggers.filter((each) => each.name === trigger);
  if (found.length > 0) return found;
  const names = triggers.map((each) => each.name);
  throw new WatchfireError("WF_RUNTIME_NOT_REDELIVERED", {
    what: `function ${name} has no trigger of this name`,
    actual: trigger,
    hint: `did you mean --trigger ${suggest(trigger, names) ?? names[0]}?`,
  });
}

/** Finds a run that the engine may no longer have. A schedule's cannot be repeated from the history. */
async function earlierRun(
  history: ControlApiParts["history"],
  name: string,
  id: string,
): Promise<EarlierRun | undefined> {
  const [run] = history?.isOn ? await history.find({ function: name, id, limit: 1 }) : [];
  if (!run) return undefined;
  const type = run.type === "Reconcile" ? "Modified" : changeTypes.find((each) => each === run.type);
  if (type === undefined) return undefined;
  const key = run.object.includes("/") ? run.object : `/${run.object}`;
  return { id, trigger: run.trigger, key, type, resourceVersion: resourceVersion(run.version) };
}

/** Returns the schedule to run. @throws WatchfireError WF_RUNTIME_NOT_REDELIVERED unless exactly one matches */
function scheduleOf(name: string, schedules: readonly Schedule[], trigger: string | undefined): string {
  const [found, ...more] = schedules.filter((each) => trigger === undefined || each.name === trigger);
  if (found && more.length === 0) return found.name;
  const names = schedules.map((each) => each.name);
  const hint =
    names.length === 0
      ? `\`watchfire redeliver ${name}\` runs it for objects`
      : `add --trigger ${trigger === undefined ? names.join(" or --trigger ") : (suggest(trigger, names) ?? names[0])}`;
  throw new WatchfireError("WF_RUNTIME_NOT_REDELIVERED", {
    what: found ? `function ${name} has several schedules` : `function ${name} has no such schedule`,
    actual: trigger,
    hint,
  });
}

function describeRun(
  name: string,
  { id, trigger, key, type, resourceVersion, attempt, outcome, durationMs, at, error }: PastRun,
  kinds: ReadonlyMap<string, string>,
  redact: (text: string) => string,
): RunRow {
  return {
    function: name,
    id,
    trigger,
    type,
    kind: kinds.get(trigger) ?? "",
    object: key.replace(/^\//, ""),
    resourceVersion,
    attempt,
    outcome,
    durationMs,
    at: new Date(at).toISOString(),
    ...(error !== undefined && { error: redact(error) }),
  };
}
