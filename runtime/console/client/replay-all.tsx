import { useState } from "preact/hooks";
import type { z } from "zod";
import type { replayAnswerSchema } from "../../observe/dead-letter.ts";
import { post } from "./api.tsx";
import { act, Confirm } from "./parts.tsx";
import { deniedId, type Rights } from "./rights.tsx";

/** Dead letters in one request, so that the progress can be seen. */
const atOnce = 50;

export const letterCount = (count: number): string => (count === 1 ? "1 dead letter" : `${count} dead letters`);

/**
 * Replays dead letters, and returns what became of them.
 * @param progress is called with the number of those that are replayed
 */
export async function replay(
  ids: readonly string[],
  reason: string,
  progress: (done: number) => void = () => {},
): Promise<string> {
  const waiting = new Set<string>();
  for (let start = 0; start < ids.length; start += atOnce) {
    const body = { ids: ids.slice(start, start + atOnce) };
    const answer = await post<z.infer<typeof replayAnswerSchema>>("/api/dead-letters/replay", body, reason);
    for (const each of answer.waiting) waiting.add(each.function);
    progress(Math.min(ids.length, start + atOnce));
  }
  const waits = [...waiting].map((name) => `; function ${name} is not loaded: its events wait on disk until it loads`);
  return `${letterCount(ids.length)} ${ids.length === 1 ? "is" : "are"} replayed${waits.join("")}`;
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
    await act(() => replay(ids, reason, (count) => setDone({ count, of: ids.length })));
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
