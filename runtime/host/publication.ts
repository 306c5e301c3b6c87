import { isDeepStrictEqual } from "node:util";
import { placeOfFunction, qualifiedName } from "../access/account.ts";
import type { SetState } from "../catalog/cluster-source.ts";
import type { SetPublication } from "../control/function-status/set-publisher.ts";
import type { Publication, PublishedFunction } from "../control/function-status/status-publisher.ts";
import type { PausedSets } from "../control/paused-sets.ts";
import type { Ownership } from "./ownership.ts";
import type { Status } from "./status.ts";

/** Whether this host reports what a slot has. */
const isReportedHere = (partitions: Ownership["partitions"], slot: number): boolean => {
  const partition = partitions.get(slot);
  return (
    partition !== undefined &&
    (partition.active ?? partition.damage) !== undefined &&
    partition.holds &&
    !partition.isEnding
  );
};

/**
 * Selects the functions whose status this host publishes: those whose first shard it has, and its parts of others, also if
 * damaged. So exactly one replica writes a function's status, and only that one deletes its object. A part is published under the
 * name of the process, because a previous owner's report says nothing about it.
 */
export function publicationOf(
  ownership: Pick<Ownership, "partitions" | "names" | "slotsOf" | "originOf" | "owner" | "owners">,
  reports: Status["functions"],
): Publication {
  const { partitions, owner = "", owners } = ownership;
  const isHere = (slot: number) => isReportedHere(partitions, slot);
  const live = [...partitions].filter(([slot]) => isHere(slot)).map(([, { live }]) => live);
  const origins = new Map(
    live.flatMap(({ all, rejected }) => [
      ...rejected.map(({ name, origin }) => [name, origin] as const),
      ...all.map(({ name, origin }) => [name, origin] as const),
    ]),
  );
  const functions = reports.flatMap((report): PublishedFunction[] => {
    const origin = origins.get(report.name) ?? ownership.originOf(report.name);
    if (!origin) return [];
    const slots = ownership.slotsOf(report.name);
    const [first] = slots;
    const here = slots.filter(isHere);
    // A slot that is being released is still reported here, but its next owner publishes it.
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
      if (ownership.names.includes(name)) return false;
      const [slot = 0] = ownership.slotsOf(name);
      return isHere(slot) && (partitions.get(slot)?.live.isKnown(name) ?? false);
    },
    held: [...partitions.keys()]
      .filter(isHere)
      .toSorted((a, b) => a - b)
      .join(),
  };
}

/**
 * Returns the part of a publication for the Function objects of one namespace, by the names that the functions have there.
 * `undefined`: the runtime's own namespace.
 */
export function publicationIn(namespace: string | undefined, { functions, isGone, held }: Publication): Publication {
  return {
    functions: functions.flatMap((each) => {
      const place = placeOfFunction(each.report.name);
      return place.namespace === namespace ? { ...each, report: { ...each.report, name: place.name } } : [];
    }),
    isGone: (name) => isGone(namespace === undefined ? name : qualifiedName(name, namespace)),
    ...(held !== undefined && { held }),
  };
}

/**
 * Returns the sets of one namespace that this host publishes: all, if it has the first slot. `namespace`: as for
 * `publicationIn`.
 */
export function setPublicationIn(
  namespace: string | undefined,
  { partitions, owner }: Pick<Ownership, "partitions" | "owner">,
  reports: Status["functions"],
  states: readonly SetState[] | undefined,
  levers: Pick<PausedSets, "of"> | undefined,
): SetPublication {
  // A set that was not read may have any name.
  if (!states || !isReportedHere(partitions, 0))
    return { sets: [], functions: undefined, isGone: () => false, held: "" };
  const functions = reports.flatMap((report) => {
    const place = placeOfFunction(report.name);
    return place.namespace === namespace ? [[place.name, { ...report, name: place.name }] as const] : [];
  });
  return {
    sets: states.map((state) => {
      const lever = levers?.of(state.name);
      return { state, isPaused: lever?.paused ?? false, generation: lever?.generation };
    }),
    functions: owner === undefined ? new Map(functions) : undefined,
    isGone: () => true,
    held: "0",
  };
}
