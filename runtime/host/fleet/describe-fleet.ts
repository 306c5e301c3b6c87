import type { FleetReport } from "../../control/fleet-report.ts";
import type { FleetView } from "../../slots/lease-observer.ts";
import type { Catalogue } from "./catalogue.ts";
import { damageOn } from "./damaged-slots.ts";
import type { SlotRun } from "./slot-run.ts";

/** How the fleet stands, as one of its replicas sees it. */
export function describeFleet(
  replica: string,
  slots: number,
  view: FleetView | undefined,
  runs: ReadonlyMap<number, SlotRun>,
  catalogue: Pick<Catalogue, "names" | "slotsOf">,
  obstacle: string | undefined,
): FleetReport {
  const placed = catalogue.names.flatMap((name) => catalogue.slotsOf(name).map((slot) => ({ name, slot })));
  const functions = Map.groupBy(placed, ({ slot }) => slot);
  return {
    replica,
    replicas: view?.members.length ?? 0,
    ...(obstacle !== undefined && { obstacle }),
    slots: Array.from({ length: slots }, (_, slot) => {
      const run = runs.get(slot);
      const owner = view?.owners[slot]?.replace(/#\d+$/, "") ?? "";
      return {
        slot,
        owner: run ? replica : owner,
        ...(run ? describeRun(run) : elsewhere(owner, damageOn(view?.slots[slot]?.annotations))),
        functions: (functions.get(slot) ?? []).map(({ name }) => name).toSorted(),
      };
    }),
  };
}

type SlotState = Pick<FleetReport["slots"][number], "state" | "reason" | "oldestEventSeconds">;

function describeRun(run: SlotRun): SlotState {
  if (run.isEnding)
    return {
      state: "leaving",
      reason: run.held.unwritten?.message ?? "its handlers finish, then another replica has it",
    };
  const { active, damage, delay, held } = run;
  if (damage) return { state: "damaged", reason: damage.message };
  const unwritten = held.unwritten?.message;
  if (!active) return { state: "opening", reason: delay ?? unwritten ?? "its positions are being read" };
  const lags = active.dispatcher.status().map(({ lagSeconds }) => lagSeconds);
  const oldestEventSeconds = Math.max(0, ...lags);
  return { state: "running", ...(unwritten !== undefined && { reason: unwritten }), oldestEventSeconds };
}

function elsewhere(owner: string, damage: string | undefined): SlotState {
  if (owner === "")
    return { state: "free", reason: "nobody has it yet, or its owner is dead: the next look finds it a replica" };
  return damage === undefined
    ? { state: "elsewhere", reason: `${owner} has it` }
    : { state: "damaged", reason: damage };
}
