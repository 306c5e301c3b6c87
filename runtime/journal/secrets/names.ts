/** Number of Secrets in a store. Each holds about a megabyte. */
const shards = 8;

/**
 * Returns the names of a store's Secrets: `watchfire-checkpoint-0` and so on. They must exist; the runtime may not create
 * Secrets.
 */
export function checkpointSecrets(account: string): string[] {
  return Array.from({ length: shards }, (_, shard) => `${account}-checkpoint-${shard}`);
}
