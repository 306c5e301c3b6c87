import { Readable } from "node:stream";
import { queryObjects } from "node:v8";
import { expect, test } from "vitest";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { Session } from "../../runtime/watch/session.ts";
import type { ObjectIdentity } from "../../runtime/watch/source-spec.ts";
import { VirtualClock } from "../virtual-clock.ts";

const waits = 2000;

test("a watch that waits again and again for those who can take no more keeps nothing of each wait", async () => {
  let left = waits;
  let kept = 0;
  // The first chunk is no whole line: all that happens is the waiting behind it.
  const body = Readable.from([Buffer.from("{")]);
  const transport = { request: async () => ({ status: 200, headers: { "content-type": "application/json" }, body }) };
  const before = queryObjects(Promise, { format: "count" }) as number;
  const session = new Session({
    transport: transport as unknown as KubeTransport,
    clock: new VirtualClock(),
    path: "/",
    query: {},
    headers: {},
    identity: {} as ObjectIdentity,
    timeoutMs: 1000,
    idleMs: () => 1000,
    congested: () => {
      if (left > 0) return left-- > 0 ? Promise.resolve() : undefined;
      kept = (queryObjects(Promise, { format: "count" }) as number) - before;
      return undefined;
    },
    opened: () => undefined,
    change: () => undefined,
    bookmark: () => undefined,
  });
  expect(await session.run()).toEqual({ type: "eof", truncated: true });
  expect(kept).toBeLessThan(waits / 10);
});
