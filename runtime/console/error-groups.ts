import { createHash } from "node:crypto";
import type { ErrorGroup } from "./schemas.ts";

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
  readonly stack?: string | undefined;
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
  const groups = Map.groupBy(occurrences, (each) =>
    JSON.stringify([each.code, placeOf(each.stack), withoutVariables(each.message)]),
  );
  return [...groups]
    .flatMap(([key, all]): ErrorGroup[] => {
      const sorted = all.toSorted((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)));
      const [first, last] = [sorted[0], sorted.at(-1)];
      if (!first || !last) return [];
      const place = placeOf(last.stack);
      const frame = last.stack === undefined ? undefined : frameOf(last.function, last.stack);
      return [
        {
          fingerprint: createHash("sha256").update(key).digest("hex").slice(0, 16),
          code: last.code,
          message: last.message,
          ...(place !== undefined && { place }),
          ...(frame !== undefined && { frame }),
          functions: [...new Set(all.map((each) => each.function))].sort(),
          count: all.length,
          firstSeen: first.at,
          lastSeen: last.at,
          deadLetters: all.flatMap(({ deadLetter }) => deadLetter ?? []),
          lastRun: { function: last.function, id: last.run },
        },
      ];
    })
    .sort((a, b) => (a.lastSeen < b.lastSeen ? 1 : -1));
}

const placeOf = (stack: string | undefined): string | undefined =>
  stack === undefined ? undefined : authorsFrame.exec(stack)?.[1];

/** Replaces what differs between two occurrences of one error: quoted texts, UIDs, object names with a slash, and numbers. */
export function withoutVariables(message: string): string {
  return message
    .replace(/"[^"\n]*"|'[^'\n]*'|`[^`\n]*`/g, "<text>")
    .replace(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, "<id>")
    .replace(/\b[a-z0-9][\w.-]*\/[a-z0-9][\w.-]*/gi, "<object>")
    .replace(/\d+(?:\.\d+)?/g, "<number>");
}
