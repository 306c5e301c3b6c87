import { expect, test } from "vitest";
import {
  Redeliverer,
  type RedelivererParts,
  type RedeliveryTarget,
} from "../../../runtime/control/redeliver/redeliverer.ts";

test("a function of schedules alone is told of no object, and the refusal says how its runs are told again", async () => {
  const redeliverer = new Redeliverer({} as RedelivererParts);
  const nightly = { name: "nightly", triggers: [] } as unknown as RedeliveryTarget;
  const refusal = {
    code: "WF_RUNTIME_NOT_REDELIVERED",
    message: expect.stringMatching(/only schedules.*watchfire redeliver nightly --run ID/),
  };
  await expect(redeliverer.object(nightly, { namespace: "", name: "a" })).rejects.toMatchObject(refusal);
  await expect(redeliverer.all(nightly, new Map())).rejects.toMatchObject(refusal);
});
