// client-node's Watch with a handler that does nothing, in this process.
import { KubeConfig, Watch } from "@kubernetes/client-node";

const total = Number(process.argv[2]);
const config = new KubeConfig();
config.loadFromDefault();

const handler = async (_object: unknown) => {};
let seen = 0;
await new Watch(config).watch(
  "/api/v1/pods",
  { resourceVersion: "1", allowWatchBookmarks: true },
  (type, object) => {
    if (type === "BOOKMARK") return;
    void handler(object);
    if (++seen === total) process.send?.({ type: "handled" });
  },
  (error) => {
    throw error ?? new Error(`the watch ended after ${seen} events`);
  },
);
process.on("disconnect", () => process.exit());
