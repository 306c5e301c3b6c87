import { z } from "zod";
import { table } from "../dev/table.ts";
import { WatchfireError } from "../errors.ts";
import { clean } from "../wording.ts";
import { command } from "./command.ts";
import { runningRuntime, runtimeOptions } from "./running-runtime.ts";

/** What of `/status` the command shows. */
const statusSchema = z.object({
  fleet: z
    .object({
      replica: z.string(),
      replicas: z.number(),
      obstacle: z.string().optional(),
      slots: z.array(
        z.object({
          slot: z.number(),
          owner: z.string(),
          state: z.string(),
          reason: z.string().optional(),
          functions: z.array(z.string()),
          oldestEventSeconds: z.number().optional(),
        }),
      ),
    })
    .optional(),
});

type Fleet = NonNullable<z.infer<typeof statusSchema>["fleet"]>;

export const slots = command({
  name: "slots",
  summary: "shows a fleet as one of its replicas sees it: each slot, who has it, its functions and its oldest event",
  options: { ...runtimeOptions, json: { summary: "the answer as JSON" } },
  async run(invocation) {
    const { fleet } = await runningRuntime(invocation).ask(statusSchema, "status");
    if (!fleet) throw new WatchfireError("WF_CLI_USAGE", { what: "this runtime is no replica of a fleet" });
    const text = invocation.given.has("json") ? JSON.stringify(fleet, null, 2) : render(fleet);
    process.stdout.write(`${text}\n`);
    return 0;
  },
});

function render({ replica, replicas, obstacle, slots: all }: Fleet): string {
  const rows = all.map(({ slot, owner, state, functions, oldestEventSeconds }) => [
    String(slot),
    owner,
    state,
    oldestEventSeconds === undefined ? "" : `${Math.round(oldestEventSeconds)} s`,
    functions.join(" "),
  ]);
  const head = `${replica} sees ${replicas} replica${replicas === 1 ? "" : "s"}${obstacle === undefined ? "" : `; it takes no slot: ${obstacle}`}`;
  return [clean(head), ...table(["SLOT", "OWNER", "STATE", "OLDEST EVENT", "FUNCTIONS"], rows)].join("\n");
}
