import type { FleetReport } from "../control/fleet-report.ts";
import type { ReplicaRow } from "./schemas.ts";

/** Lists the replicas of a fleet that have slots, the reporting one first. Replicas do not ask each other. */
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

/** Describes which replicas an answer leaves out; `undefined` if it covers everything. */
export function unasked(fleet: FleetReport | undefined): string | undefined {
  const others = fleet ? replicasOf(fleet).filter(({ answers }) => !answers) : [];
  const free = fleet?.slots.filter(({ owner, functions }) => owner === "" && functions.length > 0) ?? [];
  const parts = [
    ...(others.length === 0
      ? []
      : [`${others.map(({ name }) => name).join(", ")} did not answer, because replicas do not ask each other`]),
    ...(free.length === 0 ? [] : [`slots ${free.map(({ slot }) => slot).join(", ")} are with no replica`]),
  ];
  return parts.length === 0 ? undefined : parts.join("; ");
}

/** Returns the replicas that run a function, without the reporting one. */
export const ownersOf = ({ replica, slots }: FleetReport, name: string): string[] => [
  ...new Set(
    slots.flatMap(({ owner, functions }) =>
      owner !== "" && owner !== replica && functions.includes(name) ? [owner] : [],
    ),
  ),
];
