import { availableParallelism } from "node:os";

// What one build may take. Beyond any of these it ends with WF_BUNDLE_LIMIT.

/** Bytes of one file: the largest single file of a common package, the TypeScript compiler's, has 9 MiB. */
export const fileLimit = 16 * 1024 * 1024;

/** Bytes of all files together. */
export const inputLimit = 64 * 1024 * 1024;

/** Files: the largest packages in common use have some 2,000 modules. */
export const fileCountLimit = 10_000;

/** Bytes of the script that comes out: as many as a deployed function may have. */
export const scriptLimit = 16 * 1024 * 1024;

/** Bytes of its source map, which holds the sources' text. */
export const mapLimit = inputLimit + scriptLimit;

/**
 * Characters of a source map that is applied to stacks, 1 Mi. At its worst one such takes 40 MiB and most of a second of a thread
 * to read. That of a handler with its packages has 20 to 400 Ki.
 */
export const appliedMapLimit = 2 ** 20;

/** Faults that are told of one function: nobody mends more of them at once. */
export const faultLimit = 100;

/** Milliseconds of one build. A function with a hundred modules takes 50, one with 2,000 a second. */
export const buildMs = 15_000;

/** Milliseconds until a builder that was started is heard of; on an idle machine it takes 100. */
export const startMs = 30_000;

/** Milliseconds after which a build no longer holds up others. */
export const slowMs = 1_000;

/** Milliseconds for which a builder waits for the next build. */
export const idleMs = 60_000;

/** Bytes of resident memory of the builder, and as many of esbuild's process: a small function takes 80 and 40 MiB. */
export const memoryLimit = 768 * 1024 * 1024;

/** Builds at a time, slow ones aside: more than the machine's cores would only wait for each other. */
export const buildLimit = Math.max(2, Math.min(availableParallelism(), 4));
