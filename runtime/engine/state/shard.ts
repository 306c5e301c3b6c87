/** The part of a function that one of its instances has, where its keys are spread over several. */
export interface Shard {
  /** Among the function's shards, from 0. */
  readonly number: number;
  /** Stands for how keys are spread, on disk: whoever spreads them otherwise finds nothing of this one's positions. */
  readonly spread: string;
  /** Whether it has what belongs to no key, such as a schedule's runs. One shard of each function does. */
  readonly isFirst: boolean;
  /** Whether a key (`namespace/name`) is this shard's. One shard of each function has it. */
  owns(key: string): boolean;
  /** Whether it may have a key of this namespace ("" of none). Where not, it never will. */
  mayOwnIn(namespace: string): boolean;
}
