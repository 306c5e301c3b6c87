import { expect, test } from "vitest";
import { Agents } from "../../runtime/kube/agents.ts";
import { VirtualClock } from "../virtual-clock.ts";

test("the same TLS material shares an agent, and a rotated one retires the old after ten minutes", async () => {
  const clock = new VirtualClock();
  const agents = new Agents(undefined, clock);
  const first = agents.for({ ca: "a", cert: "1" }, "rest");
  expect(agents.for({ ca: "a", cert: "1" }, "rest")).toBe(first);
  expect(agents.for({ ca: "a", cert: "1" }, "watch")).not.toBe(first);
  const second = agents.for({ ca: "a", cert: "2" }, "rest");
  expect(second).not.toBe(first);
  await clock.advance(599_999);
  expect(first).toMatchObject({ closed: false });
  await clock.advance(1);
  expect(first).toMatchObject({ closed: true });
  expect(second).toMatchObject({ closed: false });
  await agents.close();
  expect(clock.timers).toBe(0);
});

test("fields of TLS material are not taken for one another", () => {
  const agents = new Agents(undefined, new VirtualClock());
  const made = [{ ca: "ab" }, { ca: "a", cert: "b" }, { cert: "ab" }, { rejectUnauthorized: false }, {}].map((tls) =>
    agents.for(tls, "rest"),
  );
  expect(new Set(made).size).toBe(made.length);
});
