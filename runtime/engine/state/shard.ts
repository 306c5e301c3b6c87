/** The part of a function that one of its instances runs, if its keys are partitioned over several. */
export interface Shard {
  /** The index among the function's shards, from 0. */
  readonly number: number;
  /** Identifies the partitioning on disk: a process that partitions the keys differently does not find this one's positions. */
  readonly sharding: string;
  /** Whether it has the work that belongs to no key, such as a schedule's runs. Exactly one shard of each function does. */
  readonly isFirst: boolean;
  /** Whether a key (`namespace/name`) belongs to this shard. Exactly one shard of each function owns it. */
  owns(key: string): boolean;
  /** Whether it may ever own a key of this namespace ("" for cluster-scoped objects). */
  mayOwnIn(namespace: string): boolean;
}
