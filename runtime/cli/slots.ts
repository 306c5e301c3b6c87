import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import type { FleetReport } from "../control/fleet-report.ts";
import { table } from "../dev/table.ts";
import { command } from "./command.ts";
import { output } from "./options.ts";
import { runtimeOptions, withRuntime } from "./running-runtime.ts";
import { fleetOf } from "./status-answer.ts";

export const slots = command({
  name: "slots",
  summary: "shows a fleet as one of its replicas sees it: each slot, its owner, its functions and its oldest event",
  options: { ...runtimeOptions, output: output("json") },
  async run(invocation) {
    const fleet = await withRuntime(invocation, fleetOf, { needsToken: false });
    if (!fleet) throw new WatchfireError("WF_CLI_USAGE", { what: "this runtime is not a replica of a fleet" });
    const text = invocation.options.output === "json" ? JSON.stringify(fleet, null, 2) : render(fleet);
    process.stdout.write(`${text}\n`);
    return 0;
  },
});

function render({ replica, replicas, obstacle, slots: all }: FleetReport): string {
  const rows = all.map(({ slot, owner, state, functions, oldestEventSeconds }) => [
    String(slot),
    owner,
    state,
    oldestEventSeconds === undefined ? "" : `${Math.round(oldestEventSeconds)} s`,
    functions.join(" "),
  ]);
  const head = `${replica} sees ${replicas} replica${replicas === 1 ? "" : "s"}${obstacle === undefined ? "" : `; it takes no slot: ${obstacle}`}`;
  const damaged = all.filter(({ state }) => state === "damaged");
  const still = damaged.map(({ slot, reason = "" }) => clean(`slot ${slot} is stopped: ${reason}`));
  return [clean(head), ...table(["SLOT", "OWNER", "STATE", "OLDEST EVENT", "FUNCTIONS"], rows), ...still].join("\n");
}
