/** V8's own timeout for an entry, in milliseconds; `undefined` if it has no timeout. */
export type Timeout = { readonly timeout: number } | undefined;

/**
 * Whether V8's timeout ended what began at `startedAt`. The elapsed time is checked too, because the handler can throw an error
 * with the same message.
 */
export const isTimeout = (error: unknown, timeout: Timeout, startedAt: number): boolean =>
  timeout !== undefined &&
  performance.now() - startedAt >= timeout.timeout - 1 &&
  error instanceof Error &&
  /timed out/.test(error.message);
