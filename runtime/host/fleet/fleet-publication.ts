import { isDeepStrictEqual } from "node:util";
import type { Publication, PublishedFunction } from "../../control/function-status/status-publisher.ts";
import type { FleetView } from "../../slots/lease-observer.ts";
import type { Status } from "../status.ts";
import type { Catalogue } from "./catalogue.ts";
import type { SlotRun } from "./slot-run.ts";

/** What a publication of one replica is made of. */
export interface FleetPublicationParts {
  /** This process, as slots' Leases name it. */
  readonly owner: string;
  /** Who has each slot, as far as it is known here. */
  readonly owners: FleetView["owners"];
  readonly reports: Status["functions"];
  readonly runs: ReadonlyMap<number, SlotRun>;
  readonly catalogue: Pick<Catalogue, "names" | "slotsOf" | "originOf">;
}

/**
 * The functions that a replica tells of: those whose first shard it has, and its parts of others, also where they stand
 * still. So one replica writes how a function stands, and it alone takes a function's object away. A part is told under the
 * process's own name: what the one before it told says nothing of it.
 */
export function fleetPublication({ owner, owners, reports, runs, catalogue }: FleetPublicationParts): Publication {
  const isHere = (slot: number) => {
    const run = runs.get(slot);
    return run !== undefined && (run.active ?? run.damage) !== undefined && run.held.holds && !run.isEnding;
  };
  const live = [...runs].filter(([slot]) => isHere(slot)).map(([, run]) => run.live);
  const origins = new Map(
    live.flatMap(({ all, rejected }) => [
      ...rejected.map(({ name, origin }) => [name, origin] as const),
      ...all.map(({ name, origin }) => [name, origin] as const),
    ]),
  );
  const functions = reports.flatMap((report): PublishedFunction[] => {
    const origin = origins.get(report.name) ?? catalogue.originOf(report.name);
    if (!origin) return [];
    const slots = catalogue.slotsOf(report.name);
    const [first] = slots;
    const here = slots.filter(isHere);
    // What is given away is still reported here, and is the next one's to tell.
    if (first === undefined || here.length === 0) return [];
    const isStill = () => isDeepStrictEqual(slots.filter(isHere), here);
    if (slots.length === 1) return [{ report, origin, isStill }];
    const others = slots.filter((slot) => !isHere(slot));
    const sharing = {
      replica: owner,
      isFirst: isHere(first),
      here,
      elsewhere: new Map(others.map((slot) => [slot, owners[slot] ?? ""])),
    };
    return [{ report, origin, sharing, isStill }];
  });
  return {
    functions,
    isGone: (name) => {
      if (catalogue.names.includes(name)) return false;
      const [slot = 0] = catalogue.slotsOf(name);
      return isHere(slot) && (runs.get(slot)?.live.complete ?? false);
    },
    held: [...runs.keys()]
      .filter(isHere)
      .toSorted((a, b) => a - b)
      .join(),
  };
}
