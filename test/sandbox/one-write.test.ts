import { Socket } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { fixtureForTest } from "./fixture.ts";

it("what is delivered to several functions in one turn of the event loop leaves for their executor in one write", async () => {
  const fixture = fixtureForTest();
  const names = ["a", "b", "c"];
  for (const name of names) await fixture.load(name, "export default () => {};");
  await Promise.all(names.map((name) => fixture.run(name)));
  const writes = vi.spyOn(Socket.prototype, "_writev");
  const single = vi.spyOn(Socket.prototype, "_write");
  onTestFinished(() => {
    writes.mockRestore();
    single.mockRestore();
  });
  await Promise.all(names.map((name) => fixture.run(name)));
  const frames = writes.mock.calls.map(([chunks]) => chunks.length);
  expect([frames, single.mock.calls.length]).toEqual([[3], 0]);
});
