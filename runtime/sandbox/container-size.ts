import { WatchfireError } from "../base/errors.ts";

/** `1.5Gi` is as exact as a person needs it. */
const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)}Mi`;

/** What is wrong with handlers of so many bytes in an executors' container of so many; undefined where they may fit. */
export function memoryBeyond(memoryBytes: number, containerBytes: number): WatchfireError | undefined {
  if (memoryBytes <= containerBytes) return undefined;
  return new WatchfireError("WF_SANDBOX_CONTAINER_SMALL", { what: whatIsBeyond(memoryBytes, containerBytes) });
}

/** The same in words, for whoever knows the place. */
export const whatIsBeyond = (memoryBytes: number, containerBytes: number): string =>
  `it is ${mebibytes(memoryBytes)}, and that container has ${mebibytes(containerBytes)}`;
