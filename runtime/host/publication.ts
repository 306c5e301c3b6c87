import { isDeepStrictEqual } from "node:util";
import { placeOfFunction, qualifiedName } from "../access/account.ts";
import type { Publication, PublishedFunction } from "../control/function-status/status-publisher.ts";
import type { Ownership } from "./ownership.ts";
import type { Status } from "./status.ts";

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
  const isHere = (slot: number) => {
    const partition = partitions.get(slot);
    return (
      partition !== undefined &&
      (partition.active ?? partition.damage) !== undefined &&
      partition.holds &&
      !partition.isEnding
    );
  };
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
