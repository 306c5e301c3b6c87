import { Socket } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { frameType } from "../../runtime/sandbox/wire.ts";
import { fixtureForTest } from "./fixture.ts";

/** The process may write to other sockets meanwhile. */
const hasEvents = (chunk: unknown): boolean => Buffer.isBuffer(chunk) && chunk[4] === frameType.events;

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
  const together = writes.mock.calls.map(([chunks]) => chunks.filter((chunk: unknown) => hasEvents(chunk)).length);
  const alone = single.mock.calls.filter(([chunk]) => hasEvents(chunk)).length;
  expect([together, alone]).toEqual([[3], 0]);
});
