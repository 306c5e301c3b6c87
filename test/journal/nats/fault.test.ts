import { JetStreamApiError } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsFault } from "../../../runtime/journal/nats/fault.ts";

test("what a cluster of NATS says while it has no leader, or not the one that was asked, passes as one that is away does", () => {
  for (const [code, err_code, description] of [
    [500, 10007, "JetStream cluster not assigned to this server"],
    [503, 10008, "JetStream system temporarily unavailable"],
    [500, 10009, "JetStream cluster can not handle request"],
    [500, 10118, "stream is offline"],
    [500, 10119, "consumer is offline"],
  ] as const) {
    const fault = natsFault(new JetStreamApiError({ code, err_code, description }), "the streams could not be made");
    expect(fault.code, description).toBe("WF_CHECKPOINT_NATS_AWAY");
  }
});
