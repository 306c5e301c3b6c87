import { z } from "zod";
import { type FunctionReport, mergeReports } from "../control/function-status/function-report.ts";
import { deadLetterPageSize } from "../journal/checkpoint.ts";
import { runsAnswerSchema } from "../observe/control-api.ts";
import { type DeadLetterRow, deadLetterRowSchema } from "../observe/dead-letter.ts";
import { mostNamed } from "./error-groups.ts";
import { inOrder } from "./run-detail.ts";
import {
  changesAnswerSchema,
  type ErrorDetail,
  type ErrorGroup,
  errorDetailSchema,
  errorsAnswerSchema,
  type FunctionRow,
  functionDetailSchema,
  functionsAnswerSchema,
  overviewSchema,
  runDetailSchema,
  runEventSchema,
  runSearchSchema,
  seriesAnswerSchema,
  sourcesAnswerSchema,
  type TriggerWay,
} from "./schemas.ts";

/** One replica's answer. */
interface Answer<T> {
  readonly replica: string;
  readonly data: T;
}

/** Joins the answers of several replicas to one request. */
export interface MergeRule {
  readonly path: RegExp;
  /**
   * Returns the whole answer. The first answer is that of the asking replica, if it has one. @throws Error if an answer is not of the
   * expected form: it is of another version
   */
  merge(answers: readonly Answer<unknown>[], query: Readonly<Record<string, string>>): unknown;
}

const ofSchema = <T>(
  path: RegExp,
  schema: z.ZodType<T>,
  join: (first: T, all: readonly T[], named: readonly Answer<T>[], query: Readonly<Record<string, string>>) => T,
): MergeRule => ({
  path,
  merge(answers, query) {
    const named = answers.map(({ replica, data }) => ({ replica, data: schema.parse(data) }));
    const [first] = named;
    if (!first) throw new TypeError("no replica has answered");
    const all = named.map(({ data }) => data);
    return join(first.data, all, named, query);
  },
});

/** The requests that all replicas answer. Each other request is about one function, one dead letter, or the replica itself. */
export const merges: readonly MergeRule[] = [
  ofSchema(/^\/overview$/, overviewSchema, (first, all, named) => ({
    ...first,
    attention: [...new Map(all.flatMap(({ attention }) => attention).map((each) => [each.title, each])).values()].sort(
      (a, b) => Number(b.severity === "bad") - Number(a.severity === "bad"),
    ),
    functions: mergedReports(all.flatMap(({ functions }) => functions)),
    sources: namedSources(named),
  })),
  ofSchema(/^\/functions$/, functionsAnswerSchema, (_, all) => ({
    functions: mergedReports(all.flatMap(({ functions }) => functions)),
  })),
  ofSchema(/^\/functions\/(?!runs$|logs$)[^/]+$/, functionDetailSchema, (first, all) => ({
    ...first,
    function: mergedReports(all.map((each) => each.function))[0] ?? first.function,
    ways: first.ways.map((way) =>
      mergedWay(all.flatMap(({ ways }) => ways.filter((each) => each.trigger === way.trigger))),
    ),
  })),
  ofSchema(/^\/sources$/, sourcesAnswerSchema, (_first, _all, named) => ({ sources: namedSources(named) })),
  ofSchema(/^\/runs$/, runSearchSchema, (_, all, _named, query) => ({
    runs: newestFirst(all).slice(0, Number(query.limit ?? 100)),
    history: all.every(({ history }) => history),
  })),
  ofSchema(/^\/functions\/(?:[^/]+\/)?runs$/, runsAnswerSchema, (_, all, _named, { limit = "200" }) => ({
    runs: newestFirst(all).slice(0, Number(limit)),
  })),
  ofSchema(/^\/runs\/[^/]+$/, runDetailSchema, (first, all) => {
    const [error, deadLetter] = [
      all.find((each) => each.error)?.error,
      all.find((each) => each.deadLetter)?.deadLetter,
    ];
    return {
      function: first.function,
      id: first.id,
      attempts: all.flatMap(({ attempts }) => attempts).sort(inOrder),
      log: all
        .flatMap(({ log }) => log)
        .sort((a, b) => (a.time < b.time ? -1 : Number(a.time > b.time)))
        .map((line, number) => ({ ...line, number })),
      ...(error && { error }),
      ...(deadLetter !== undefined && { deadLetter }),
    };
  }),
  ofSchema(/^\/runs\/[^/]+\/event$/, runEventSchema, (first, all) => all.find(({ fixture }) => fixture) ?? first),
  ofSchema(/^\/errors$/, errorsAnswerSchema, (_, all) => ({
    groups: [
      ...Map.groupBy(
        all.flatMap(({ groups }) => groups),
        ({ fingerprint }) => fingerprint,
      ).values(),
    ]
      .map(mergedGroup)
      .sort((a, b) => (a.lastSeen < b.lastSeen ? 1 : -1)),
    more: all.some(({ more }) => more),
  })),
  ofSchema(/^\/errors\/[^/]+$/, errorDetailSchema, (_, all) => ({
    group: mergedGroup(all.map(({ group }) => group)),
    runs: newestFirst(all),
    plot: mergedPlot(all.map(({ plot }) => plot)),
    more: all.some(({ more }) => more),
  })),
  ofSchema(/^\/dead-letters$/, z.array(deadLetterRowSchema), (_, all) =>
    all.flat().sort(byPlace).slice(0, deadLetterPageSize),
  ),
  ofSchema(/^\/metrics\/series$/, seriesAnswerSchema, (first, all) => ({
    ...first,
    sum: all.map(({ sum }) => sum).reduce(addedSamples),
    functions: [
      ...Map.groupBy(
        all.flatMap(({ functions }) => functions),
        ({ name }) => name,
      ),
    ].map(([name, each]) => ({
      ...each.reduce((one, other) => ({ name, ...addedSamples(one, other) })),
      name,
    })),
  })),
  ofSchema(/^\/changes$/, changesAnswerSchema, (_, all) => ({
    changes: all.flatMap(({ changes }) => changes).sort((a, b) => (a.at < b.at ? 1 : -1)),
    history: all.every(({ history }) => history),
  })),
];

const newestFirst = <T extends { readonly at: string }>(answers: readonly { readonly runs: readonly T[] }[]): T[] =>
  answers.flatMap(({ runs }) => runs).sort((a, b) => (a.at < b.at ? 1 : -1));

/** The mean duration is that of the first replica that has one. */
const mergedReports = (reports: readonly FunctionRow[]): FunctionRow[] =>
  [...Map.groupBy(reports, ({ name }) => name).values()].flatMap((parts) => {
    const [first, ...more] = parts;
    if (!first) return [];
    const meanMs = parts.find((part) => part.meanMs !== undefined)?.meanMs;
    const whole = more.reduce<FunctionReport>((one, part) => mergeReports(one, part), first);
    return [{ ...whole, ...(meanMs !== undefined && { meanMs }) }];
  });

/** Each replica has its own connections. */
const namedSources = (answers: readonly Answer<z.infer<typeof sourcesAnswerSchema>>[]) =>
  answers.flatMap(({ replica, data }) => data.sources.map((source) => ({ ...source, replica })));

/** The steps of one trigger follow from its manifest, so they are the same on each replica. */
function mergedWay(ways: readonly TriggerWay[]): TriggerWay {
  return ways.reduce((one, other) => ({
    trigger: one.trigger,
    steps: one.steps.map((step, index) => {
      const same = other.steps[index];
      const heldBack = sumOf(step.heldBack, same?.heldBack);
      return { ...step, passed: step.passed + (same?.passed ?? 0), ...(heldBack !== undefined && { heldBack }) };
    }),
    outcomes: {
      received: one.outcomes.received + other.outcomes.received,
      filtered: one.outcomes.filtered + other.outcomes.filtered,
      ok: one.outcomes.ok + other.outcomes.ok,
      retry: one.outcomes.retry + other.outcomes.retry,
      deadLetter: one.outcomes.deadLetter + other.outcomes.deadLetter,
      dropped: one.outcomes.dropped + other.outcomes.dropped,
    },
  }));
}

const sumOf = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);

/** Objects of two replicas differ, except those that have moved, of which a few are named by both. */
function mergedObjects(last: ErrorGroup["objects"], before: ErrorGroup["objects"]): ErrorGroup["objects"] {
  const names = new Set([...last.names, ...before.names]);
  const count = last.count + before.count - (last.names.length + before.names.length - names.size);
  return { count, names: [...names].slice(0, mostNamed) };
}

function mergedGroup(groups: readonly ErrorGroup[]): ErrorGroup {
  return groups.reduce((one, other) => {
    const [last, before] = one.lastSeen < other.lastSeen ? [other, one] : [one, other];
    return {
      ...last,
      functions: [...new Set([...one.functions, ...other.functions])].sort(),
      objects: mergedObjects(last.objects, before.objects),
      count: one.count + other.count,
      firstSeen: one.firstSeen < other.firstSeen ? one.firstSeen : other.firstSeen,
      deadLetters: [...before.deadLetters, ...last.deadLetters],
    };
  });
}

/** The steps of two plots differ, because each begins with the first failure of its replica: counts are moved into the wider steps. */
function mergedPlot(plots: readonly ErrorDetail["plot"][]): ErrorDetail["plot"] {
  const from = Math.min(...plots.map((plot) => Date.parse(plot.from)));
  const stepMs = Math.max(...plots.map((plot) => plot.stepMs));
  const counts: number[] = [];
  for (const plot of plots) {
    for (const [index, count] of plot.counts.entries()) {
      const step = Math.floor((Date.parse(plot.from) + index * plot.stepMs - from) / stepMs);
      while (counts.length <= step) counts.push(0);
      counts[step] = (counts[step] ?? 0) + count;
    }
  }
  return { from: new Date(from).toISOString(), stepMs, counts };
}

type Samples = z.infer<typeof seriesAnswerSchema>["sum"];

/** The last samples are of the same ten seconds, more or less. */
function addedSamples(one: Samples, other: Samples): Samples {
  const added = (a: readonly number[], b: readonly number[]) => {
    const [long, short] = a.length < b.length ? [b, a] : [a, b];
    const behind = long.length - short.length;
    return long.map((count, index) => count + (short[index - behind] ?? 0));
  };
  return {
    events: added(one.events, other.events),
    errors: added(one.errors, other.errors),
    waiting: added(one.waiting, other.waiting),
  };
}

/** The order of a fleet's dead letters: by slot, then by number. */
function byPlace(a: DeadLetterRow, b: DeadLetterRow): number {
  const placeOf = ({ id }: DeadLetterRow) => id.split("-").map(Number);
  const [[slot = 0, number = 0], [otherSlot = 0, otherNumber = 0]] = [placeOf(a), placeOf(b)];
  return slot - otherSlot || number - otherNumber;
}
