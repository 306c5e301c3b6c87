/** How many Secrets a store in Kubernetes is made of; each holds about a megabyte. */
const shards = 8;

/** The Secrets of a runtime's store: `watchfire-checkpoint-0` and so on. They are made beforehand; the runtime may not. */
export function checkpointSecrets(account: string): string[] {
  return Array.from({ length: shards }, (_, shard) => `${account}-checkpoint-${shard}`);
}
