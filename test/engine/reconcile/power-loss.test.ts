import { expect, it as test } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { change, type DispatchFixture, done, quiet } from "../fixture.ts";
import { open, reconciler, runs } from "./fixture.ts";

test("a key that waits over a power loss, and over ends in good order while its function is paused, is told flagged, and no other is", async () => {
  const paused = {
    manifest: reconciler(),
    opened: async ({ dispatcher }: Pick<DispatchFixture, "dispatcher">) => dispatcher.hold("copy", "command"),
  };
  const first = await open(paused);
  first.subscription.change(change("Added", "a", 11));
  await first.clock.advance(1_000);
  first.disk.end = "power-loss";
  let it = await first.restart(paused);
  const all = [change("Added", "a", 11)];
  for (const version of [21, 31]) {
    all.push(change("Added", `n${version}`, version));
    await it.list(version, all);
    const pods = it.function.subscription("pods", { selection: "all", namespace: "" });
    pods.list("initial", undefined).end(resourceVersion(String(version)));
    await it.clock.advance(1_000);
    const clean = await it.drain();
    expect([version, clean]).toEqual([version, true]);
    await it.store.close(clean);
    it = await it.restart(paused);
  }
  it.runner.answer = () => done;
  it.dispatcher.release("copy", "command");
  await quiet(it.runner);
  await it.clock.advance(1_000);
  await quiet(it.runner);
  expect(runs(it).toSorted()).toEqual([
    "a@11 <- Added settings a !",
    "n21@21 <- Added settings n21",
    "n31@31 <- Added settings n31",
  ]);
});
