import { relative } from "node:path";
import type { z } from "zod";
import { placeOfFunction } from "../access/account.ts";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { version } from "../base/version.ts";
import type { SetHistory } from "../catalog/deploy/history.ts";
import type { Revision } from "../catalog/deploy/revision.ts";
import type { AuditLog } from "../control/access/audit-log.ts";
import type { FleetReport } from "../control/fleet-report.ts";
import { noSuchFunction } from "../control/no-such-function.ts";
import { describeHistoryRun, historyQuestion } from "../history/run-answer.ts";
import type { RunHistory } from "../history/run-history.ts";
import { sourceKey } from "../informer/fanout/source-spec.ts";
import type { DeadLetterSummary } from "../journal/batch.ts";
import { deadLetterPageSize } from "../journal/checkpoint.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { codeFrame } from "../observe/code-frame.ts";
import type { ControlApi } from "../observe/control-api.ts";
import type { DeadLetterService } from "../observe/control-routes.ts";
import type { EventOutcomes } from "../observe/metrics.ts";
import { type AttentionParts, attentionOf } from "./attention.ts";
import type { WatchedStatus } from "./change-feed.ts";
import { describeErrorGroup, groupErrors, type Occurrence } from "./error-groups.ts";
import { eventWays } from "./event-way.ts";
import { describeTime } from "./function-time.ts";
import type { MetricSeries } from "./metric-series.ts";
import { ownersOf, replicasOf, unasked } from "./replicas.ts";
import { describeAttempt, describeRunDetail, readLines } from "./run-detail.ts";
import { type RunEventParts, runEvent, saveRunEvent } from "./run-event.ts";
import { searchRuns } from "./run-search.ts";
import type {
  configurationSchema,
  ErrorDetail,
  FunctionTime,
  RevisionsAnswer,
  RunDetail,
  RunEvent,
  RunsQuestion,
} from "./schemas.ts";
import { usersOf } from "./source-users.ts";

/** Pages of dead letters that are looked at for errors. */
const mostPages = 5;

/** Attempts of one run, and failed attempts for the groups of errors, that are read from the history. */
const mostAttempts = 100;
const mostFailures = 1_000;

/** Outcomes of events whose attempts may have failed. */
const failures: ReadonlySet<string> = new Set(["retry", "dead_letter", "dropped"]);

/** The parts of the runtime that the console asks. */
export interface InquiryParts {
  status(): WatchedStatus &
    AttentionParts & {
      readonly role: string;
      readonly fleet?: FleetReport | undefined;
      readonly lease?: { readonly holder: string } | undefined;
    };
  /** The manifests of the functions that were accepted. */
  manifests(): readonly FunctionManifest[];
  readonly functions: Pick<ControlApi, "runs" | "logs">;
  /** The runs and lines of the last days. Default: those in memory. */
  readonly history?: Pick<RunHistory, "isOn" | "find" | "linesOf" | "received" | "warnedOf"> | undefined;
  deadLetters(): Pick<DeadLetterService, "list" | "show">;
  outcomesOf(functionName: string): readonly EventOutcomes[];
  /** Returns the mean duration of a function's attempts since the start, in milliseconds; `undefined` before the first. */
  meanMsOf(functionName: string): number | undefined;
  /** Describes how the runtime was started, without secrets. */
  configuration(): z.infer<typeof configurationSchema>;
  /** Removes the values of a function's environment. */
  redactData(functionName: string, data: unknown): unknown;
  /** Returns the folder for the fixtures of a function, if the runtime may write them. Default: a browser downloads them. */
  fixtureFolder?(functionName: string): string | undefined;
  /** The samples of the last hour. */
  readonly series: Pick<MetricSeries, "bytesPerSecond">;
  /**
   * Reads the revisions of a set of deployed functions. `namespace`: that of the set; `undefined` for the runtime's own. Rejects with
   * WF_DEPLOYED_REFUSED.
   */
  revisionsOf(set: string, namespace: string | undefined): Promise<Pick<SetHistory, "current" | "revisions">>;
  /** The changes that somebody asked for. */
  readonly audit: Pick<AuditLog, "recent" | "isKept">;
  readonly clock: Pick<Clock, "now">;
  /** The text of a function's file as it ran. */
  sourceText(functionName: string, file: string): string | undefined;
}

/** Answers what the console's pages ask, by joining what the commands ask one by one. */
export class Inquiry {
  private readonly parts: InquiryParts;

  constructor(parts: InquiryParts) {
    this.parts = parts;
  }

  overview() {
    const status = this.parts.status();
    const { role, functions, sources, fleet, lease } = status;
    const elsewhere = unasked(fleet);
    const attention = attentionOf(status);
    const rows = functions.map((report) => {
      const meanMs = this.parts.meanMsOf(report.name);
      return meanMs === undefined ? report : { ...report, meanMs };
    });
    return {
      ...{ version, role, attention, functions: rows, sources },
      ...(fleet && { replicas: replicasOf(fleet) }),
      ...(elsewhere !== undefined && { elsewhere }),
      ...(role === "standby" && lease?.holder && { holder: lease.holder }),
    };
  }

  sources() {
    const { series } = this.parts;
    const manifests = this.parts.manifests();
    const { sources } = this.parts.status();
    return {
      sources: sources.map(({ receivedBytes, ...source }) => {
        const { apiVersion = "", kind = "" } = source;
        const bytesPerSecond = series.bytesPerSecond(sourceKey({ ...source, apiVersion, kind }));
        const functions = usersOf(source, manifests);
        return { ...source, functions, ...(bytesPerSecond !== undefined && { bytesPerSecond }) };
      }),
    };
  }

  /** Returns where the time of a function's last attempts goes. */
  async time(name: string): Promise<FunctionTime> {
    const { history } = this.parts;
    return describeTime(history?.isOn ? await history.find({ function: name, limit: mostAttempts }) : []);
  }

  /** Lists the deployments of a function's set. @throws WatchfireError WF_RUNTIME_NO_FUNCTION, WF_DEPLOYED_REFUSED */
  async revisions(name: string): Promise<RevisionsAnswer> {
    const { functions } = this.parts.status();
    const report = functions.find((each) => each.name === name);
    if (!report) {
      throw noSuchFunction(
        name,
        functions.map((each) => each.name),
      );
    }
    const { set } = report;
    if (set === undefined) return { revisions: [] };
    const place = placeOfFunction(name);
    const { current, revisions } = await this.parts.revisionsOf(set, place.namespace);
    return {
      set,
      ...(current !== undefined && { current }),
      revisions: revisions.map((each, index) => describeRevision(each, revisions[index + 1], place.name)),
    };
  }

  /** Lists who changed what: of one function, or of all. */
  async changes(name: string | undefined) {
    const { audit } = this.parts;
    const described = (await audit.recent(name)).map(
      ({ at, who, verb, set, revision, reason, result, from, ...of }) => {
        const functions =
          name === undefined ? (of.functions ?? (of.function === undefined ? [] : [of.function])) : [name];
        return { at, who, verb, functions, set, revision, reason, result, from };
      },
    );
    return { changes: described, history: audit.isKept };
  }

  /** @throws WatchfireError WF_RUNTIME_NO_FUNCTION; WF_LEASE_STANDBY if other replicas have it */
  describe(name: string) {
    const { functions, fleet } = this.parts.status();
    const report = functions.find((each) => each.name === name);
    const owners = fleet ? ownersOf(fleet, name) : [];
    if (!report && owners.length > 0) {
      const what = `another replica runs the function: ${owners.join(", ")}`;
      const hint = "`kubectl watchfire console --pod NAME` opens its console";
      throw new WatchfireError("WF_LEASE_STANDBY", { what, actual: name, hint });
    }
    if (!report) {
      const names = functions.map((each) => each.name);
      throw noSuchFunction(name, names);
    }
    const manifest = this.parts.manifests().find((each) => each.name === name);
    if (!manifest) return { function: report, ways: [] };
    const ways = eventWays(manifest, report.filtered, this.parts.outcomesOf(name));
    return { function: report, ways, manifest: shownManifest(manifest) };
  }

  /** Returns the text of a function's handler. @throws WatchfireError WF_RUNTIME_NO_FUNCTION */
  source(name: string) {
    const manifest = this.parts.manifests().find((each) => each.name === name);
    if (!manifest) {
      throw noSuchFunction(
        name,
        this.parts.manifests().map((each) => each.name),
      );
    }
    // Stacks name files relative to the working folder, or by their paths.
    const names = [relative(process.cwd(), manifest.handler), manifest.handler];
    const file = names.find((each) => this.parts.sourceText(name, each) !== undefined);
    if (file === undefined) return { file: names[0] ?? "" };
    return { file, text: this.parts.sourceText(name, file) };
  }

  async search(question: RunsQuestion) {
    const { history } = this.parts;
    if (history?.isOn) {
      const { function: name, ...filters } = question;
      const found = await history.find(historyQuestion(name, filters));
      const warned = await history.warnedOf(found);
      const elsewhere = unasked(this.parts.status().fleet);
      return {
        runs: found.map((run) => ({ ...describeHistoryRun(run), ...(warned.has(run) && { warned: true }) })),
        history: true,
        ...(elsewhere !== undefined && { elsewhere }),
      };
    }
    const { functions } = this.parts.status();
    const { outcome, log, logged } = question;
    // Only the history has the lines of a run.
    if (log !== undefined || logged !== undefined) return { runs: [], history: false };
    const isFailure = outcome === "failed" || outcome === "permanent";
    const asked = isFailure ? functions.filter(({ name }) => this.hasFailed(name)) : functions;
    return { ...(await searchRuns(asked, question, (name) => this.runsOf(name))), history: false };
  }

  async run(name: string, id: string): Promise<RunDetail> {
    const { functions, history } = this.parts;
    if (history?.isOn) return this.runOnRecord(name, id, history);
    const { runs, elsewhere } = await functions.runs(name);
    const attempts = runs.filter((run) => run.id === id);
    const letter = (await this.letters(name)).find(({ id: event }) => event === id);
    const of = {
      function: name,
      id,
      ...(letter && { deadLetter: letter.letter }),
      ...(elsewhere !== undefined && { elsewhere }),
    };
    const lines = await functions.logs(name, 0, 0);
    return describeRunDetail(of, attempts, lines, letter?.error, (stack) => this.frame(name, stack));
  }

  /** The function may be gone, or be another replica's by now. */
  private async runOnRecord(
    name: string,
    id: string,
    history: NonNullable<InquiryParts["history"]>,
  ): Promise<RunDetail> {
    const runs = await history.find({ function: name, id, limit: mostAttempts });
    const lines = await history.linesOf(name, id, runs);
    const letter = (await this.letters(name)).find(({ id: event }) => event === id);
    const { error, frame } = runs.find(({ detail }) => detail.error)?.detail ?? {};
    const of = { function: name, id, ...(letter && { deadLetter: letter.letter }) };
    const shown = error ? { ...error, ...(frame !== undefined && { frame }) } : letter?.error;
    return describeRunDetail(of, runs.map(describeAttempt), { lines }, shown, (stack) => this.frame(name, stack));
  }

  async errors() {
    const { found, more } = await this.occurrences();
    const elsewhere = unasked(this.parts.status().fleet);
    const groups = groupErrors(found, (name, stack) => this.frame(name, stack));
    return { groups, more, ...(elsewhere !== undefined && { elsewhere }) };
  }

  /** @throws WatchfireError WF_RUNTIME_NO_ERROR_GROUP */
  async error(fingerprint: string): Promise<ErrorDetail> {
    const { found, more } = await this.occurrences();
    const frameOf = (name: string, stack: string) => this.frame(name, stack);
    const described = describeErrorGroup(found, fingerprint, this.parts.clock.now(), frameOf);
    if (!described)
      throw new WatchfireError("WF_RUNTIME_NO_ERROR_GROUP", {
        what: "there is no such group of errors",
        actual: fingerprint,
      });
    return { ...described, more };
  }

  /** Returns what a run received. */
  received(name: string, id: string): Promise<RunEvent> {
    return runEvent(this.eventParts, name, id);
  }

  /** Writes what a run received into its function's folder of fixtures. @throws WatchfireError WF_CLI_FIXTURE */
  saveFixture(name: string, id: string): Promise<string> {
    return saveRunEvent(this.eventParts, name, id);
  }

  private get eventParts(): RunEventParts {
    const { history, redactData, fixtureFolder } = this.parts;
    return {
      history,
      redact: redactData,
      ...(fixtureFolder && { fixtureFolder }),
      letterOf: async (name, id) => (await this.letters(name)).find((letter) => letter.id === id),
      show: (letter) => this.parts.deadLetters().show(letter),
    };
  }

  /** Failed attempts and dead letters, in any order. */
  private async occurrences(): Promise<{ readonly found: readonly Occurrence[]; readonly more: boolean }> {
    const { functions } = this.parts.status();
    const letters = await this.letters(undefined);
    const byEvent = new Map(letters.map((letter) => [eventKey(letter.function, letter.id), letter]));
    const names = functions.map(({ name }) => name).filter((name) => this.hasFailed(name));
    const found: Occurrence[] = [];
    if (this.parts.history?.isOn) found.push(...(await this.failuresOnRecord(this.parts.history, byEvent)));
    else for (const name of names) found.push(...(await this.failuresOf(name, byEvent)));
    // The remaining letters have no attempt in memory.
    for (const letter of byEvent.values()) found.push(occurrenceOf(letter));
    const isFull = letters.length >= mostPages * deadLetterPageSize;
    return { found, more: isFull || found.length - byEvent.size >= mostFailures };
  }

  /** Whether an attempt has failed since the start. Runs of other functions need not be read. */
  private hasFailed(name: string): boolean {
    return this.parts.outcomesOf(name).some(({ outcome, count }) => count > 0 && failures.has(outcome));
  }

  /** The newest failed attempts on record, and their dead letters, which are taken out of `letters`. */
  private async failuresOnRecord(
    history: NonNullable<InquiryParts["history"]>,
    letters: Map<string, DeadLetterSummary>,
  ): Promise<Occurrence[]> {
    const runs = await history.find({ outcome: "any-failure", limit: mostFailures });
    return runs.map(({ function: name, run, at, object, detail: { error, frame } }) => {
      const key = eventKey(name, run);
      // The newest attempt comes first: it is the one that was given up.
      const letter = letters.get(key);
      letters.delete(key);
      if (letter) return { ...occurrenceOf(letter), frame };
      const { message = "", stack } = error ?? {};
      return {
        function: name,
        run,
        at: new Date(at).toISOString(),
        code: error?.code ?? error?.name ?? "Error",
        message,
        object,
        stack,
        frame,
      };
    });
  }

  /** A function's failed attempts, with their stacks and dead letters, which are taken out of `letters`. */
  private async failuresOf(name: string, letters: Map<string, DeadLetterSummary>): Promise<Occurrence[]> {
    const { runs } = await this.runsOf(name);
    const failed = runs.filter(({ outcome }) => outcome !== "ok");
    if (failed.length === 0) return [];
    const lines = readLines(await this.parts.functions.logs(name, 0, 0), (line) => line.includes('"error":{'));
    const stacks = new Map(lines.map(({ run, attempt, error }) => [`${run} ${attempt}`, error]));
    return failed.map((run) => {
      const key = eventKey(name, run.id);
      // The newest attempt comes first: it is the one that was given up.
      const letter = letters.get(key);
      letters.delete(key);
      if (letter) return occurrenceOf(letter);
      const logged = stacks.get(`${run.id} ${run.attempt}`);
      const [, code = "Error", message = ""] = /^([^:\s]+): ([\s\S]*)$/.exec(run.error ?? "") ?? [];
      return {
        function: name,
        run: run.id,
        at: run.at,
        code: logged?.code ?? logged?.name ?? code,
        message: logged?.message ?? message,
        object: run.object,
        stack: logged?.stack,
      };
    });
  }

  /** Returns no runs for a function that other replicas have. */
  private async runsOf(name: string) {
    try {
      return await this.parts.functions.runs(name);
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      return { runs: [] };
    }
  }

  /** Oldest first. A standby has no letters. */
  private async letters(name: string | undefined): Promise<DeadLetterSummary[]> {
    const all: DeadLetterSummary[] = [];
    try {
      for (let page = 0; page < mostPages; page++) {
        const next = await this.parts.deadLetters().list({ after: all.at(-1)?.letter, function: name });
        all.push(...next);
        if (next.length < deadLetterPageSize) break;
      }
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
    }
    return all;
  }

  private frame(name: string, stack: string): string | undefined {
    return codeFrame(stack, (file) => this.parts.sourceText(name, file));
  }
}

const eventKey = (functionName: string, id: string): string => `${functionName}\n${id}`;

function occurrenceOf(letter: DeadLetterSummary): Occurrence {
  const { name, message, stack, code } = letter.error;
  return {
    function: letter.function,
    run: letter.id,
    at: new Date(letter.failedAt).toISOString(),
    code: code ?? name,
    message,
    object: letter.namespace === "" ? letter.name : `${letter.namespace}/${letter.name}`,
    stack,
    deadLetter: letter.bodyDropped ? undefined : letter.letter,
  };
}

/** Describes one revision, and what it changed of a function. `before`: the revision before, if it is on record. */
function describeRevision(
  { number, at, by, git, message, functions }: Revision,
  before: Revision | undefined,
  name: string,
): RevisionsAnswer["revisions"][number] {
  const codeIn = (of: Pick<Revision, "functions">) => of.functions.find((each) => each.name === name)?.sha256;
  const [now, then] = [codeIn({ functions }), before && codeIn(before)];
  const compared = () => {
    if (now === then) return now === undefined ? "absent" : "unchanged";
    if (then === undefined) return "added";
    return now === undefined ? "removed" : "changed";
  };
  return {
    number,
    at,
    by: "account" in by ? by.account : `unknown: ${by.unknown}`,
    ...(git && { commit: git.commit, dirty: git.dirty }),
    message,
    change: before ? compared() : number === 1 && now !== undefined ? "added" : "unknown",
  };
}

/** The manifest without the values of its variables, which may be meant for nobody's eyes. */
function shownManifest({ env, ...rest }: FunctionManifest): Record<string, unknown> {
  const shown = env.map(({ value, ...each }) => (value === undefined ? each : { ...each, value: "[not shown]" }));
  return { ...rest, env: shown };
}
