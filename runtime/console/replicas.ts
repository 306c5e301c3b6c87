import type { FleetReport } from "../control/fleet-report.ts";
import type { ReplicaRow } from "./schemas.ts";

/** Lists the replicas of a fleet that have slots, the reporting one first. Only that one has answered so far. */
export function replicasOf({ replica, slots }: FleetReport): ReplicaRow[] {
  const owners = Map.groupBy(
    slots.filter(({ owner }) => owner !== ""),
    ({ owner }) => owner,
  );
  const rows = [...owners].map(([name, owned]) => ({
    name,
    slots: owned.map(({ slot }) => slot),
    functions: [...new Set(owned.flatMap(({ functions }) => functions))].sort(),
    answers: name === replica,
  }));
  const isPresent = rows.some(({ answers }) => answers);
  const own = { name: replica, slots: [], functions: [], answers: true };
  return [...(isPresent ? [] : [own]), ...rows].toSorted(
    (a, b) => Number(b.answers) - Number(a.answers) || (a.name < b.name ? -1 : 1),
  );
}

/**
 * Describes which replicas an answer leaves out; `undefined` if it covers everything.
 * @param answered the replicas whose answers are in it; default: the reporting one
 * @param silent why further ones did not answer
 */
export function unasked(
  fleet: FleetReport | undefined,
  answered: ReadonlySet<string> = new Set(fleet ? [fleet.replica] : []),
  silent: ReadonlyMap<string, string> = new Map(),
): string | undefined {
  const owners = fleet ? replicasOf(fleet).map(({ name }) => name) : [];
  const missing = [...new Set([...owners, ...silent.keys()])].filter((name) => !answered.has(name)).sort();
  const free = fleet?.slots.filter(({ owner, functions }) => owner === "" && functions.length > 0) ?? [];
  const parts = [
    ...missing.map((name) => `${name} did not answer: ${silent.get(name) ?? "it was not asked"}`),
    ...(free.length === 0 ? [] : [`slots ${free.map(({ slot }) => slot).join(", ")} are with no replica`]),
  ];
  return parts.length === 0 ? undefined : parts.join("; ");
}

/** Whether the reporting replica runs a function, or a shard of it. */
export const runsHere = ({ replica, slots }: FleetReport, name: string): boolean =>
  slots.some(({ owner, functions }) => owner === replica && functions.includes(name));

/** Returns the replicas that run a function, without the reporting one. */
export const ownersOf = ({ replica, slots }: FleetReport, name: string): string[] => [
  ...new Set(
    slots.flatMap(({ owner, functions }) =>
      owner !== "" && owner !== replica && functions.includes(name) ? [owner] : [],
    ),
  ),
];

/** The name of a replica, of which a Lease has the term as well. */
export const replicaName = (owner: string): string => owner.replace(/#\d+$/, "");

/** Returns the replica that has a dead letter, by the slot in its id; "" if no other replica has it. */
export function ownerOfLetter({ replica, slots }: FleetReport, id: string): string {
  const slot = /^(\d+)-\d+$/.exec(id)?.[1];
  const owner = slot === undefined ? "" : (slots[Number(slot)]?.owner ?? "");
  return owner === replica ? "" : owner;
}
