// Door: where functions come from. The runtime asks a source for all of them each time it reads.

import type { WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import type { Shard } from "../engine/state/shard.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { RejectedFunction } from "../manifest/load.ts";

/** Where a function's code lies, for people and for its status in the cluster. */
export type Origin =
  | { readonly type: "folder"; readonly manifest: string }
  | { readonly type: "config-map"; readonly name: string; readonly sha256: string };

/** One function that can run. */
export interface FunctionOffer {
  readonly manifest: FunctionManifest;
  readonly origin: Origin;
  /** The part of it that is meant; left out: all of it. It stays the same as long as the function is loaded. */
  readonly shard?: Shard;
  /** What of its manifest is not taken up, while the rest of it is. */
  readonly refused?: WatchfireError;
  /**
   * Its code: built from the folder, or as it was deployed. `signal`: it is not wanted any more.
   * @throws WatchfireError of the bundle section
   */
  bundle(signal?: AbortSignal): Promise<Bundle>;
  /** Whether it is being removed: its handler may go before its manifest does. */
  isGone?(): boolean;
}

/** One function that cannot run. */
export interface RejectedOffer extends RejectedFunction {
  readonly origin: Origin;
}

/** What a source holds at one moment. */
export interface FunctionSet {
  /** Those that can run, by name. */
  readonly functions: readonly FunctionOffer[];
  /** Those that cannot; what runs of them goes on. */
  readonly rejected: readonly RejectedOffer[];
  /** Names of others that are there, whose positions stay; what runs of them goes on. */
  readonly withheld?: readonly string[];
  /** Why the source itself could not be read, where that is so. */
  readonly faults: readonly WatchfireError[];
  /** Whether what is not among them is gone for certain; only then is anything stopped and its positions retired. */
  readonly complete: boolean;
}

export interface FunctionSource {
  /** Why what it offers is not what somebody put there last, as of now. */
  readonly trouble?: WatchfireError | undefined;
  /** Waits for what it must know first; rejects only when the signal aborts. */
  read(signal: AbortSignal): Promise<FunctionSet>;
}
