/** A condition that can no longer come true: waiting on is of no use. */
export class Hopeless extends Error {}

/** How often a condition is looked at unless the caller says how often, in milliseconds. */
const usualPollMs = 10;

/**
 * Waits until `condition` gives something other than undefined or false, and gives that. What it throws counts as not yet,
 * unless it is Hopeless; the last of it is the cause when `limitMs` is over.
 */
export async function until<T>(
  what: string,
  limitMs: number,
  condition: () => Promise<T | undefined | false>,
  pollMs = usualPollMs,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (let cause: unknown; ; ) {
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      cause = error;
    }
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`, { cause });
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
