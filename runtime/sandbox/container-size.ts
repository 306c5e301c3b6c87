import { WatchfireError } from "../base/errors.ts";

/** Whole mebibytes are exact enough for a message; `1.5Gi` prints as `1536Mi`. */
const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)}Mi`;

/**
 * Returns an error if handlers with `memoryBytes` do not fit in an executors' container of `containerBytes`, else `undefined`.
 */
export function memoryBeyond(memoryBytes: number, containerBytes: number): WatchfireError | undefined {
  if (memoryBytes <= containerBytes) return undefined;
  return new WatchfireError("WF_SANDBOX_CONTAINER_SMALL", { what: whatIsBeyond(memoryBytes, containerBytes) });
}

/** The message of that error, for callers that add the location themselves. */
export const whatIsBeyond = (memoryBytes: number, containerBytes: number): string =>
  `it is ${mebibytes(memoryBytes)}, and that container has ${mebibytes(containerBytes)}`;
