import { expect, onTestFinished, test, vi } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { serve } from "../../runtime/cli/serve.ts";
import type { RuntimeOptions } from "../../runtime/host/components.ts";
import { Host } from "../../runtime/host/host.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** Runs a runtime that is stopped after its start; `drain` simulates how running attempts end. */
async function stopped(drain: (lose: (fault: WatchfireError) => void) => void): Promise<void> {
  const { promise: lost, resolve: lose } = Promise.withResolvers<WatchfireError>();
  const runtime: Pick<Host, "lost" | "drain"> = { lost, drain: async () => drain(lose) };
  const start = vi.spyOn(Host, "start").mockResolvedValue(runtime as Host);
  onTestFinished(() => start.mockRestore());
  const stop = new AbortController();
  const options: Partial<RuntimeOptions> = { clock: new VirtualClock() };
  await serve(options as RuntimeOptions, stop.signal, async () => stop.abort());
}

test("a runtime that loses its store while it drains ends with the reason", async () => {
  const fault = new WatchfireError("WF_CHECKPOINT_FENCED", { what: "another has taken it over" });
  await expect(stopped((lose) => lose(fault))).rejects.toBe(fault);
});

test("a runtime that loses nothing while it drains ends well", async () => {
  await stopped(() => undefined);
});
