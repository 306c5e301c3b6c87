/** A condition that can no longer become true, so waiting is pointless. */
export class Hopeless extends Error {}

/** Default polling interval in milliseconds. */
const usualPollMs = 10;

/**
 * Waits until `condition` returns something other than `undefined` or false, and returns that. If it throws, it is called again,
 * unless the error is Hopeless. After `limitMs` the last error is the cause of the rejection.
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
