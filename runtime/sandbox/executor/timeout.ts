/** V8's own timeout for an entry, in milliseconds, where it gets one. */
export type Timeout = { readonly timeout: number } | undefined;

/** Whether V8's timeout ended what began then: its words alone could be the handler's. */
export const isTimeout = (error: unknown, timeout: Timeout, startedAt: number): boolean =>
  timeout !== undefined &&
  performance.now() - startedAt >= timeout.timeout - 1 &&
  error instanceof Error &&
  /timed out/.test(error.message);
