import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { shards } from "./pod-stream.ts";

/**
 * Writes functions that share one source. Each event matches one of them, by a condition on the Pods' `shard` label.
 */
export async function writeHundred(folder: string): Promise<void> {
  for (let shard = 0; shard < shards; shard++) {
    const own = join(folder, `shard-${shard}`);
    await mkdir(own, { recursive: true });
    await cp(join(import.meta.dirname, "functions-default/noop/handler.ts"), join(own, "handler.ts"));
    const matchConditions = [{ name: "own", expression: `object.metadata.labels.shard == "${shard}"` }];
    const manifest = {
      apiVersion: "watchfire.dev/v1alpha1",
      kind: "Function",
      metadata: { name: `shard-${shard}` },
      spec: {
        handler: "./handler.ts",
        triggers: [{ name: "pods", watch: { apiVersion: "v1", kind: "Pod", matchConditions } }],
      },
    };
    await writeFile(join(own, "function.yaml"), JSON.stringify(manifest));
  }
}
