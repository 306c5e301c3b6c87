import { useState } from "preact/hooks";
import type { z } from "zod";
import type { deadLetterPageSize } from "../../journal/checkpoint.ts";
import type { DeadLetterRow, replayAnswerSchema } from "../../observe/dead-letter.ts";
import type { runSearchSchema } from "../schemas.ts";
import { get, post } from "./api.tsx";
import { type ActionResult, act, Confirm } from "./parts.tsx";
import { deniedId, type Rights } from "./rights.tsx";

/** Dead letters in one request, so that the progress can be seen. */
const atOnce = 50;
/** Dead letters in one answer. */
const pageSize: typeof deadLetterPageSize = 1000;

export const letterCount = (count: number): string => (count === 1 ? "1 dead letter" : `${count} dead letters`);

/** Milliseconds that the outcomes of a replay are waited for, and between two looks. */
const outcomeMs = 30_000;
const lookMs = 500;

/**
 * Replays dead letters, waits up to 30 seconds for their attempts, and returns their outcomes.
 * @param functions those of the dead letters
 * @param progress is called with the number of those that are replayed
 */
export async function replay(
  ids: readonly string[],
  functions: readonly string[],
  reason: string,
  progress: (done: number) => void = () => {},
): Promise<ActionResult> {
  const events = await eventsOf(ids, functions);
  // The runtime's clock, not the browser's.
  const [newest] = (await get<Found>("/api/runs?limit=1")).runs;
  const waiting = new Set<string>();
  for (let start = 0; start < ids.length; start += atOnce) {
    const body = { ids: ids.slice(start, start + atOnce) };
    const answer = await post<z.infer<typeof replayAnswerSchema>>("/api/dead-letters/replay", body, reason);
    for (const each of answer.waiting) waiting.add(each.function);
    progress(Math.min(ids.length, start + atOnce));
  }
  const { ok, failed } = await outcomesOf(events, functions, waiting, newest?.at);
  const left = ids.length - ok - failed;
  const waits = [...waiting].map((name) => `; function ${name} is not loaded: its events wait on disk until it loads`);
  const unknown = left === 0 ? "" : `, ${left} with no outcome yet`;
  return {
    text: `${letterCount(ids.length)} replayed: ${ok} ok, ${failed} failed${unknown}${waits.join("")}`,
    isBad: failed > 0,
  };
}

type Found = z.infer<typeof runSearchSchema>;

const keyOf = (name: string, id: string): string => `${name}\n${id}`;

/** The events of dead letters, by their keys. */
async function eventsOf(ids: readonly string[], functions: readonly string[]): Promise<ReadonlySet<string>> {
  const wanted = new Set(ids);
  const events = new Set<string>();
  for (const name of functions) {
    for (const letter of await lettersOf(name)) {
      if (wanted.has(letter.id)) events.add(keyOf(letter.function, letter.eventId));
    }
  }
  return events;
}

/** Counts the events whose last attempt after a time went well, or failed. Ends early once each has an outcome. */
async function outcomesOf(
  events: ReadonlySet<string>,
  functions: readonly string[],
  waiting: ReadonlySet<string>,
  after = "",
): Promise<{ readonly ok: number; readonly failed: number }> {
  const query = after === "" ? "" : `&since=${encodeURIComponent(after)}`;
  const asked = functions.filter((name) => !waiting.has(name));
  for (const until = performance.now() + outcomeMs; ; ) {
    const last = new Map<string, boolean>();
    for (const name of asked) {
      const path = `/api/runs?limit=1000&function=${encodeURIComponent(name)}${query}`;
      for (const run of (await get<Found>(path)).runs) {
        const key = keyOf(run.function, run.id);
        // The newest comes first.
        if (events.has(key) && run.at > after && !last.has(key)) last.set(key, run.outcome === "ok");
      }
    }
    const ok = [...last.values()].filter(Boolean).length;
    const isWhole = last.size === events.size || asked.length === 0;
    if (isWhole || performance.now() > until) return { ok, failed: last.size - ok };
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

/** Pages of a function's dead letters that are read. */
const mostPages = 10;

async function lettersOf(name: string): Promise<DeadLetterRow[]> {
  const all: DeadLetterRow[] = [];
  for (let page = 0; page < mostPages; page++) {
    const after = all.at(-1)?.id;
    const next = await get<DeadLetterRow[]>(
      `/api/dead-letters?function=${encodeURIComponent(name)}${after === undefined ? "" : `&after=${after}`}`,
    );
    all.push(...next);
    if (next.length < pageSize) break;
  }
  return all;
}

/** A button that replays the dead letters of a group after a confirmation, and shows how many are done. */
export function ReplayAll({
  ids,
  functions,
  rights,
}: {
  ids: readonly string[];
  functions: readonly string[];
  rights: Rights;
}) {
  const [isAsking, setAsking] = useState(false);
  const [done, setDone] = useState<{ readonly count: number; readonly of: number }>();
  const all = letterCount(ids.length);
  const run = async (reason: string) => {
    setAsking(false);
    setDone({ count: 0, of: ids.length });
    await act(() => replay(ids, functions, reason, (count) => setDone({ count, of: ids.length })));
    setDone(undefined);
  };
  return (
    <>
      {ids.length > 0 && (
        <button
          type="button"
          class="primary"
          disabled={done !== undefined || !rights.mayWrite}
          aria-describedby={deniedId}
          onClick={() => setAsking(true)}
        >
          Replay all: {all}
        </button>
      )}
      {done !== undefined && (
        <span role="status">
          <progress max={done.of} value={done.count} aria-label="Replayed" /> {done.count} of {done.of} replayed
        </span>
      )}
      {isAsking && (
        <Confirm
          title={`Replay ${all}?`}
          yes={`Replay ${all}`}
          onYes={(reason) => void run(reason)}
          onNo={() => setAsking(false)}
        >
          <p>
            The handler of {functions.join(", ")} runs again with each event as it was. What fails again becomes a dead
            letter again.
          </p>
        </Confirm>
      )}
    </>
  );
}
