import type { FunctionManifest, Trigger } from "../../../runtime/manifest/function.ts";
import type { Revision } from "./cluster.ts";

/** A delivery to a handler, or a run of a key: which object it showed, and how the attempt ended. */
export interface Told {
  readonly tick: number;
  /** Time on the world's clock, in milliseconds. */
  readonly at: number;
  readonly phase: number;
  readonly key: string;
  readonly type: "present" | "gone";
  /** "" for a run without an object. */
  readonly uid: string;
  readonly rv: number;
  readonly isRun: boolean;
  readonly isFlagged: boolean;
  /** `undefined` if it has not ended or was interrupted. */
  ended: "done" | "failed" | undefined;
  /** True if a kill may have lost its record. */
  mayBeLost: boolean;
}

/** The objects of a trigger that an idle reconciler had seen. */
export interface Base {
  readonly phase: number;
  readonly tick: number;
  readonly states: ReadonlyMap<string, Revision>;
}

/** A trigger independent of its name: an edit that changes only the name does not change its identity. */
export class Identity {
  readonly number: number;
  /** The trigger in the manifest of each phase that contains it. */
  readonly triggers = new Map<number, Trigger>();
  readonly told: Told[] = [];
  /** Objects that lists show up to this resourceVersion may be older than its first deployment. */
  initialUpTo = 0;
  hasBeenQuiet = false;
  base: Base | undefined;

  constructor(number: number) {
    this.number = number;
  }

  /** The newest finished delivery of a key. */
  last(key: string): Told | undefined {
    return this.told.findLast((it) => it.key === key && it.ended === "done");
  }

  /** Whether, after a tick, the object's deletion was delivered or a run of its key saw no object. */
  isToldGone(key: string, uid: string, after: number): boolean {
    const isOfIt = (it: Told) => it.type === "gone" && it.key === key && (it.uid === uid || it.isRun);
    return this.told.some((it) => it.tick > after && it.ended === "done" && isOfIt(it));
  }

  toldOf(uid: string): Told[] {
    return this.told.filter((it) => it.uid === uid);
  }

  get name(): string {
    return [...this.triggers.values()].at(-1)?.name ?? "";
  }

  trigger(phase: number): Trigger {
    const found = this.triggers.get(phase);
    if (!found) throw new Error(`trigger ${this.number} is not there in phase ${phase}`);
    return found;
  }
}

/** Maps the triggers of a manifest to those of the previous one. */
export class Identities {
  readonly all: Identity[] = [];
  private current = new Map<string, Identity>();

  /** The identity of a trigger of the manifest in force. */
  of(name: string): Identity | undefined {
    return this.current.get(name);
  }

  /** The trigger that last had a name before a phase. */
  lastNamed(name: string, before: number): Identity | undefined {
    const phases = this.all.flatMap((identity) =>
      [...identity.triggers].flatMap(([phase, trigger]) =>
        phase < before && trigger.name === name ? [{ identity, phase }] : [],
      ),
    );
    return phases.sort((one, other) => other.phase - one.phase)[0]?.identity;
  }

  get here(): Iterable<Identity> {
    return this.current.values();
  }

  /** Starts a phase with this manifest. Returns the triggers of the previous manifest, by their names there. */
  enter(phase: number, { triggers }: FunctionManifest): ReadonlyMap<string, Identity> {
    const former = this.current;
    const before = [...this.current.values()];
    const found = new Map<Trigger, Identity>();
    const free = (identity: Identity) => ![...found.values()].includes(identity);
    const claim = (candidates: readonly Identity[], isSame: (was: Trigger, is: Trigger) => boolean) => {
      for (const trigger of triggers) {
        if (found.has(trigger)) continue;
        const match = candidates.find((it) => free(it) && isSame(lastOf(it), trigger));
        if (match) found.set(trigger, match);
      }
    };
    const sameName = (was: Trigger, is: Trigger) => was.name === is.name && was.kind === is.kind;
    claim(before, (was, is) => sameName(was, is) && watchOf(was) === watchOf(is));
    // A trigger that an earlier edit removed is matched by its name, whichever trigger has its watch by now.
    claim(
      this.all.filter((it) => !before.includes(it)),
      sameName,
    );
    claim(before, (was, is) => watchOf(was) === watchOf(is));
    claim(before, sameName);
    this.current = new Map();
    for (const trigger of triggers) {
      const identity = found.get(trigger) ?? this.made();
      identity.triggers.set(phase, trigger);
      this.current.set(trigger.name, identity);
    }
    return former;
  }

  private made(): Identity {
    const identity = new Identity(this.all.length + 1);
    this.all.push(identity);
    return identity;
  }
}

function lastOf(identity: Identity): Trigger {
  const last = [...identity.triggers.values()].at(-1);
  if (!last) throw new Error("an identity without a trigger");
  return last;
}

/**
 * True if it is ambiguous which trigger is which, because an edited trigger happens to watch what another one watched before.
 */
export function isAmbiguous(before: readonly Trigger[], after: readonly Trigger[]): boolean {
  const stays = (was: Trigger) => after.some((is) => is.name === was.name && watchOf(is) === watchOf(was));
  const moved = before.filter((was) => !stays(was));
  return after.some((is) => moved.some((was) => was.name !== is.name && watchOf(was) === watchOf(is)));
}

/** Everything in a trigger except its name. */
const watchOf = ({ name: _, ...watch }: Trigger): string => JSON.stringify(Object.entries(watch).sort());
