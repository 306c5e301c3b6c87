import { createHash } from "node:crypto";
import type { ErrorDetail, ErrorGroup } from "./schemas.ts";

/** Occurrences of a group that are listed, and steps of its plot. */
const mostListed = 200;
const plotSteps = 48;
/** Objects of a group that are named. */
export const mostNamed = 10;

/** One occurrence of an error: a failed attempt, a dead letter, or both. */
export interface Occurrence {
  readonly function: string;
  /** The event's id. */
  readonly run: string;
  /** ISO 8601. */
  readonly at: string;
  /** The error's code, or its name. */
  readonly code: string;
  readonly message: string;
  /** `namespace/name`, or only the name. */
  readonly object?: string | undefined;
  readonly stack?: string | undefined;
  /** The lines around the place as they were when it failed, if they are on record. */
  readonly frame?: string | undefined;
  /** Set if it became a dead letter that can be replayed. */
  readonly deadLetter?: string | undefined;
}

/** The topmost frame of a stack that is in an author's file. */
const authorsFrame = /^\s+at (?:.*\()?([^()\s]+\.[cm]?[jt]sx?:\d+:\d+)\)?$/m;

/**
 * Groups errors that have the same code, place and message without variables. Returns those last seen first.
 * @param frameOf returns the source around the place of a stack
 */
export function groupErrors(
  occurrences: readonly Occurrence[],
  frameOf: (functionName: string, stack: string) => string | undefined = () => undefined,
): ErrorGroup[] {
  return [...byFingerprint(occurrences)]
    .flatMap(([fingerprint, sorted]): ErrorGroup[] => {
      const [first, last] = [sorted[0], sorted.at(-1)];
      if (!first || !last) return [];
      const place = placeOf(last.stack);
      const present = last.stack === undefined ? undefined : frameOf(last.function, last.stack);
      const frame = last.frame ?? present;
      // The newest first.
      const objects = [...new Set(sorted.toReversed().flatMap(({ object }) => object ?? []))];
      return [
        {
          fingerprint,
          code: last.code,
          message: last.message,
          ...(place !== undefined && { place }),
          ...(frame !== undefined && { frame }),
          // Without present code, the function may not be loaded.
          ...(present !== undefined && frame !== present && { codeChanged: true }),
          objects: { count: objects.length, names: objects.slice(0, mostNamed) },
          functions: [...new Set(sorted.map((each) => each.function))].sort(),
          count: sorted.length,
          firstSeen: first.at,
          lastSeen: last.at,
          deadLetters: sorted.flatMap(({ deadLetter }) => deadLetter ?? []),
          lastRun: { function: last.function, id: last.run },
        },
      ];
    })
    .sort((a, b) => (a.lastSeen < b.lastSeen ? 1 : -1));
}

/** Groups occurrences. Each group is sorted, the first one first. */
function byFingerprint(occurrences: readonly Occurrence[]): Map<string, Occurrence[]> {
  const groups = Map.groupBy(occurrences, (each) =>
    JSON.stringify([each.code, placeOf(each.stack), withoutVariables(each.message, each.object)]),
  );
  return new Map(
    [...groups].map(([key, all]) => [
      createHash("sha256").update(key).digest("hex").slice(0, 16),
      all.toSorted((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at))),
    ]),
  );
}

/**
 * Returns one group with its occurrences; `undefined` if there is no such group.
 * @param now epoch milliseconds, at which its plot ends
 */
export function describeErrorGroup(
  occurrences: readonly Occurrence[],
  fingerprint: string,
  now: number,
  frameOf?: (functionName: string, stack: string) => string | undefined,
): Omit<ErrorDetail, "more"> | undefined {
  const all = byFingerprint(occurrences).get(fingerprint) ?? [];
  const [group] = groupErrors(all, frameOf);
  if (!group) return undefined;
  const runs = all.slice(-mostListed).reverse();
  return {
    group,
    runs: runs.map(({ function: name, run, at, message, object, deadLetter }) => ({
      ...{ function: name, id: run, at, message },
      ...(object !== undefined && { object }),
      ...(deadLetter !== undefined && { deadLetter }),
    })),
    plot: plotOf(all, now),
  };
}

/** Counts occurrences in equal steps, from the first one until now. */
function plotOf(sorted: readonly Occurrence[], now: number): ErrorDetail["plot"] {
  const times = sorted.map(({ at }) => Date.parse(at));
  const first = times[0] ?? now;
  const stepMs = Math.max(1000, Math.ceil((now - first + 1) / plotSteps));
  const counts = new Array<number>(Math.min(plotSteps, Math.floor(Math.max(0, now - first) / stepMs) + 1)).fill(0);
  for (const time of times) {
    const step = Math.min(counts.length - 1, Math.floor((time - first) / stepMs));
    counts[step] = (counts[step] ?? 0) + 1;
  }
  return { from: new Date(first).toISOString(), stepMs, counts };
}

const placeOf = (stack: string | undefined): string | undefined =>
  stack === undefined ? undefined : authorsFrame.exec(stack)?.[1];

/**
 * Replaces the parts that differ between two occurrences of one error: quoted texts, UIDs, object names with a slash, numbers with their signs, and the
 * names of the occurrence's own object.
 */
export function withoutVariables(message: string, object = ""): string {
  const names = object.split("/").filter((name) => name.length > 1);
  const text = names.reduce((left, name) => left.replace(wordOf(name), "<object>"), message);
  return text
    .replace(/"[^"\n]*"|'[^'\n]*'|`[^`\n]*`/g, "<text>")
    .replace(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, "<id>")
    .replace(/\b[a-z0-9][\w.-]*\/[a-z0-9][\w.-]*/gi, "<object>")
    .replace(/(?<!\w)[-+\u2212]?\d+(?:\.\d+)?|\d+(?:\.\d+)?/g, "<number>");
}

/** Matches a name where it is a whole word: `a` is no part of `web-a`. */
const wordOf = (name: string): RegExp => new RegExp(`(?<![\\w.-])${RegExp.escape(name)}(?![\\w-])`, "g");
