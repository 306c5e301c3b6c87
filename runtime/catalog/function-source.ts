// Interface of sources of functions. The runtime asks a source for all of its functions each time it reads.

import type { WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import type { Shard } from "../engine/state/sharding.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { RejectedFunction } from "../manifest/load.ts";

/** Location of a function's code, for messages and for its status in the cluster. */
export type Origin =
  | { readonly type: "folder"; readonly manifest: string }
  | {
      readonly type: "config-map";
      readonly name: string;
      readonly sha256: string;
      readonly set: string;
      /** The namespace of the set, if it is not the runtime's. */
      readonly namespace?: string;
    };

/** One function that can run. */
export interface FunctionOffer {
  readonly manifest: FunctionManifest;
  readonly origin: Origin;
  /** The shard of the function that is meant; absent: all of it. It stays the same as long as the function is loaded. */
  readonly shard?: Shard;
  /** Other code that gets a share of its keys. Absent: its own code gets all. */
  readonly canary?: CanaryOffer;
  /** Error for the part of its manifest that is not used; the rest is. */
  readonly refused?: WatchfireError;
  /**
   * Returns its code: built from the folder, or as deployed. `signal` aborts when it is no longer needed.
   * @throws WatchfireError of the bundle section
   */
  bundle(signal?: AbortSignal): Promise<Bundle>;
  /** Whether it is being removed: its handler may disappear before its manifest does. */
  isGone?(): boolean;
}

/** Code that gets a share of a function's keys. */
export interface CanaryOffer extends Pick<FunctionOffer, "manifest" | "bundle"> {
  /** Differs for each `deploy --canary`. */
  readonly id: string;
  /** Percentage of the keys, above 0 and below 100. */
  readonly share: number;
  /** Decides, with the key, which keys it gets; the same for all functions of the set. */
  readonly salt: string;
}

/** One function that cannot run. */
export interface RejectedOffer extends RejectedFunction {
  readonly origin: Origin;
}

/** Contents of a source at one moment. */
export interface FunctionSet {
  /** Functions that can run, by name. */
  readonly functions: readonly FunctionOffer[];
  /** Functions that cannot run; their running versions continue. */
  readonly rejected: readonly RejectedOffer[];
  /** Names of other existing functions; their checkpoints stay and their running versions continue. */
  readonly withheld?: readonly string[];
  /** Other namespaces whose sets are not known: no function of theirs counts as removed. Default: all are known. */
  readonly unreadNamespaces?: readonly string[];
  /** Why the source itself could not be read, if so. */
  readonly faults: readonly WatchfireError[];
  /** Whether functions not listed here are certainly removed; only then are any stopped and their checkpoints retired. */
  readonly complete: boolean;
}

export interface FunctionSource {
  /** Why the source currently offers something other than what was put there last. */
  readonly trouble?: WatchfireError | undefined;
  /** Waits for the data it needs; rejects only when the signal aborts. */
  read(signal: AbortSignal): Promise<FunctionSet>;
}
