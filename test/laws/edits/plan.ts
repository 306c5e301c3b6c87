import { Dice } from "../random.ts";
import { edits, type Tells } from "./fields.ts";
import { isAmbiguous } from "./identities.ts";
import { anySpec, readSpec, repair, type Spec } from "./spec.ts";

/**
 * How the phase of the previous manifest ends. `hot`: the function is reloaded in the running process. `stopped`: the process
 * drains
 * and another one starts. `killed`: the process ends without draining.
 */
export type Ending = "hot" | "stopped" | "killed";

/** One edit of a plan, which may be skipped. */
export interface PlannedEdit {
  readonly name: string;
  readonly seed: number;
}

/** A part of a world with one manifest. */
export interface Phase {
  /** Seed of the events within the phase. */
  readonly seed: number;
  /** Edits that lead to its manifest. */
  readonly edits: readonly PlannedEdit[];
  /** How it begins after the previous phase. */
  readonly begins: Ending;
  /** Number of random events in it. */
  readonly steps: number;
  /** True if the world becomes quiet at its end, so that all laws can be checked. Always true in the last phase. */
  readonly isQuiet: boolean;
  /** Number of changes of the cluster between its end and the next phase. */
  readonly meanwhile: number;
  /** True if the history of these changes is lost. */
  readonly compacts: boolean;
  /** True if processes are killed in it. */
  readonly crashes: boolean;
  /** True if its handlers fail, are slow, and ask to be called again. */
  readonly troubles: boolean;
  readonly usesOldObject: boolean;
}

export interface Plan {
  readonly seed: number;
  readonly phases: readonly Phase[];
  readonly memoryEvents: number;
}

/** The edit `there and back` restores the manifest before the last one. */
const back = "there and back";
const byName = new Map(edits.map((edit) => [edit.name, edit]));

/** Edits that replace or rename a trigger: they are applied alone, so that the trigger's identity is not ambiguous. */
const alone = new Set([
  "trigger renamed",
  "names of two triggers swapped",
  "kind",
  "trigger added",
  "trigger removed",
  back,
]);

/**
 * Edits that decide which objects are delivered, and how. The other edits must change nothing, and are drawn less often.
 */
const telling = edits.filter(({ paths }) => paths.every((path) => path.includes("triggers[]")));
const isOften = new Set([...telling.map(({ name }) => name).filter((name) => !name.startsWith("schedule")), "mode"]);

/** @param only names of the edits that it may have; all by default */
export function planOf(seed: number, only?: readonly string[]): Plan {
  const dice = new Dice(seed);
  const often = [...isOften, "mode", back, back];
  const seldom = [...byName.keys()].filter((name) => !isOften.has(name));
  const choose = () => dice.pick(only ?? (dice.chance(0.75) ? often : seldom));
  const phases: Phase[] = [];
  const count = 3 + dice.below(3);
  const troubles = dice.chance(0.6);
  const crashes = dice.chance(0.5);
  for (let at = 0; at < count; at++) {
    const planned: PlannedEdit[] = [];
    for (let more = 1 + dice.below(3); at > 0 && more > 0; more--) {
      const name = choose();
      if (planned.length > 0 && (alone.has(name) || planned.some((each) => alone.has(each.name)))) continue;
      planned.push({ name, seed: dice.below(1e9) });
    }
    phases.push({
      seed: dice.below(1e9),
      edits: planned,
      begins: dice.pick(["hot", "stopped", "killed"]),
      steps: 6 + dice.below(24),
      isQuiet: at === count - 1 || dice.chance(0.6),
      meanwhile: dice.chance(0.3) ? 0 : 1 + dice.below(8),
      compacts: dice.chance(0.4),
      crashes: crashes && dice.chance(0.5),
      troubles: troubles && dice.chance(0.7),
      usesOldObject: dice.chance(0.5),
    });
  }
  return { seed, phases, memoryEvents: dice.pick([2, 4, 1000]) };
}

/** A manifest of a plan, with the edits that lead to it. */
export interface Edited {
  readonly spec: Spec;
  /** The names of edits that had an effect. */
  readonly changed: readonly string[];
  readonly tells: Tells;
}

/** The manifests of a plan, one per phase. All are valid: an edit that would make one invalid is skipped. */
export function manifestsOf({ seed, phases }: Plan): Edited[] {
  const made: Edited[] = [];
  for (const { edits: planned } of phases) {
    const before = made.at(-1);
    if (!before) {
      made.push({ spec: anySpec(new Dice(seed + 1)), changed: [], tells: "other" });
      continue;
    }
    let { spec } = before;
    const changed: string[] = [];
    const effects: Tells[] = [];
    for (const each of planned) {
      const [next, tells] = each.name === back ? undone(made) : applied(spec, each);
      if (!next || JSON.stringify(next) === JSON.stringify(spec) || typeof readSpec(next) === "string") continue;
      spec = next;
      changed.push(each.name);
      effects.push(tells);
    }
    if (!isRename(changed, before.changed) && isUnclear(before.spec, spec)) {
      made.push({ spec: before.spec, changed: [], tells: "nothing" });
      continue;
    }
    const tells = effects.includes("other") ? "other" : effects.includes("selection") ? "selection" : "nothing";
    made.push({ spec, changed, tells });
  }
  return made;
}

const renames = new Set(["trigger renamed", "names of two triggers swapped"]);

/** True if only names were edited, or restored. */
const isRename = ([name = ""]: readonly string[], [last = ""]: readonly string[]): boolean =>
  renames.has(name === back ? last : name);

function isUnclear(before: Spec, after: Spec): boolean {
  const [was, is] = [readSpec(before), readSpec(after)];
  return typeof was !== "string" && typeof is !== "string" && isAmbiguous(was.triggers, is.triggers);
}

function applied(spec: Spec, { name, seed }: PlannedEdit): [Spec | undefined, Tells] {
  const edit = byName.get(name);
  if (!edit) return [undefined, "nothing"];
  const dice = new Dice(seed);
  const next = structuredClone(spec);
  edit.change(next, dice);
  repair(next, dice);
  return [next, edit.tells];
}

function undone(made: readonly Edited[]): [Spec | undefined, Tells] {
  const [earlier, last] = made.slice(-2);
  return [last && earlier?.spec, last?.tells ?? "nothing"];
}
