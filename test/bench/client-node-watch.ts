// client-node's Watch in this process. Its handler does nothing, or with `paced` records its start.
import { KubeConfig, Watch } from "@kubernetes/client-node";

const [events, mode] = process.argv.slice(2);
const total = Number(events);
const config = new KubeConfig();
config.loadFromDefault();

interface Stamped {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
}

const delays: Record<number, number> = {};
const idle = async (_object: unknown) => {};
const note = async (object: Stamped) => {
  const delay = Math.max(0, Date.now() - Number(object.metadata.annotations["bench/sent"]));
  delays[delay] = (delays[delay] ?? 0) + 1;
};
const handler = mode === "paced" ? note : idle;
let seen = 0;
await new Watch(config).watch(
  "/api/v1/pods",
  { resourceVersion: "1", allowWatchBookmarks: true },
  (type, object) => {
    if (type === "BOOKMARK") return;
    void handler(object);
    if (++seen === total) process.send?.({ delays });
  },
  (error) => {
    throw error ?? new Error(`the watch ended after ${seen} events`);
  },
);
process.on("disconnect", () => process.exit());
