// A watch that waits repeatedly for congested subscribers. Prints the number of promises that this leaves behind.
import { Readable } from "node:stream";
import { queryObjects } from "node:v8";
import type { ObjectIdentity } from "../../runtime/informer/fanout/source-spec.ts";
import { Session } from "../../runtime/informer/stream/session.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { VirtualClock } from "../virtual-clock.ts";

const promises = () => Number(queryObjects(Promise, { format: "count" }));

let waits = Number(process.argv[2]);
// An incomplete event, so that only the wait after it is exercised.
const body = Readable.from([Buffer.from("{")]);
const transport = { request: async () => ({ status: 200, headers: { "content-type": "application/json" }, body }) };
const before = promises();
const session = new Session({
  transport: transport as unknown as KubeTransport,
  clock: new VirtualClock(),
  path: "/",
  query: {},
  headers: {},
  identity: {} as ObjectIdentity,
  timeoutMs: 1000,
  idleMs: () => 1000,
  spaceEndsSilence: () => true,
  congested: () => {
    if (waits-- > 0) return Promise.resolve();
    process.stdout.write(String(promises() - before));
    return undefined;
  },
  opened: () => undefined,
  change: () => undefined,
  bookmark: () => undefined,
});
await session.run();
