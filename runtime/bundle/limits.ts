import { availableParallelism } from "node:os";

// Limits of one build. Exceeding any of them ends it with WF_BUNDLE_LIMIT.

/** Bytes of one file: the largest single file of a common package, the TypeScript compiler's, has 9 MiB. */
export const fileLimit = 16 * 1024 * 1024;

/** Bytes of all files together. */
export const inputLimit = 64 * 1024 * 1024;

/** Files: the largest packages in common use have some 2,000 modules. */
export const fileCountLimit = 10_000;

/** Bytes of the resulting script: the same limit as for a deployed function. */
export const scriptLimit = 16 * 1024 * 1024;

/** Bytes of its source map, which contains the sources' text. */
export const mapLimit = inputLimit + scriptLimit;

/**
 * Longest source map that is applied to stacks, in characters: 1 Mi. In the worst case reading it takes 40 MiB and most of a
 * second of a thread. A map of a handler with its packages has 20 to 400 Ki.
 */
export const appliedMapLimit = 2 ** 20;

/** Most faults reported for one function: nobody fixes more of them at once. */
export const faultLimit = 100;

/** Milliseconds of one build. A function with a hundred modules takes 50, one with 2,000 a second. */
export const buildMs = 15_000;

/** Milliseconds until a started builder must send its greeting; on an idle machine it takes 100. */
export const startMs = 30_000;

/** Milliseconds after which a build no longer delays others. */
export const slowMs = 1_000;

/** Milliseconds for which a builder waits for the next build. */
export const idleMs = 60_000;

/** Bytes of resident memory of the builder, and the same for esbuild's process: a small function takes 80 and 40 MiB. */
export const memoryLimit = 768 * 1024 * 1024;

/** Concurrent builds, not counting slow ones: more than the machine has cores would only wait for each other. */
export const buildLimit = Math.max(2, Math.min(availableParallelism(), 4));
