import type { SpilledEvent, SpillHeader } from "../../journal/batch.ts";
import type { Look, Newest } from "../delivery/delivery.ts";
import { nameOf, namespaceOf } from "../state/by-namespace.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Spill } from "./spill.ts";

/** The trigger without `key`: of which kind the objects are that are reconciled, and how they stand. */
export class Primary {
  readonly view: KnownObjects;
  private readonly look: Look;
  /** Of such a kind no key has a namespace. Undefined while no object of the kind was seen. */
  private isClusterScoped: boolean | undefined;
  /** Whether what is known of a namespace is as new as the server was when this process began to read it. */
  private readonly isSettledIn: (namespace: string) => boolean;
  private readonly untold: UntoldStates;
  private readonly names: ReadonlyMap<string, string>;

  /** @param names of triggers and schedules, by the identity that causes have */
  constructor(
    view: KnownObjects,
    look: Look,
    untold: UntoldStates,
    names: ReadonlyMap<string, string>,
    isSettledIn: (namespace: string) => boolean,
  ) {
    this.untold = untold;
    this.names = names;
    this.view = view;
    this.look = look;
    this.isSettledIn = isSettledIn;
  }

  /** Whether a key may run: before its object is known, one that is there would be taken for gone. Nor before what waits of it has ended. */
  isSettled(key: string): boolean {
    return this.isSettledIn(nameOf(key).namespace) && !this.view.isToCome(key) && !this.untold.has(key);
  }

  /** Whether a key has an object, or one whose first event waits, as far as is known. */
  has(key: string): boolean {
    return this.view.stands(key) !== undefined || this.view.isToCome(key);
  }

  /** The object of a key, no older than what has woken it; undefined where there is none. Rejects where it cannot be read. */
  async newest(key: string): Promise<Newest | undefined> {
    const { view } = this;
    const known = view.stands(key);
    if (!known) return undefined;
    const body = await view.body(key);
    if (!body) return this.look(view.functionName, view.trigger.name, nameOf(key));
    const { uid, resourceVersion } = view.stands(key) ?? known;
    return { uid, resourceVersion, body };
  }

  /** What the trigger of a cause is called now; one that is gone has the name that it had first. */
  nameOf(identity: string): string {
    return this.names.get(identity) ?? identity;
  }

  /** An object of the kind has this key. */
  saw(key: string): void {
    this.isClusterScoped = namespaceOf(key) === "";
  }

  /** The key as the kind has it: that of a cluster-scoped object has no namespace, also once no object of the kind is left. */
  home(key: string): string {
    if (this.isClusterScoped === undefined) {
      const { anyKey } = this.view;
      if (anyKey !== undefined) this.saw(anyKey);
    }
    return this.isClusterScoped ? `/${nameOf(key).name}` : key;
  }

  /** Of all objects that stand. */
  *keys(): Iterable<string> {
    for (const [key] of this.view.live("")) yield key;
  }
}

/**
 * Objects whose states wait on disk to be told without a flag, in events that an edit made of keys. They are known already, so
 * that a run could show one before its event has ended. A later edit would then have that event told as news.
 */
export class UntoldStates {
  private readonly spill: Pick<Spill, "hasRead">;
  /** By object, the last event's place. */
  private readonly sequences = new Map<string, number>();
  /** Whether an event of the object is in memory. To be set before it is asked. */
  isInLane: (key: string) => boolean = () => false;

  constructor(
    events: Iterable<Pick<SpillHeader | SpilledEvent, "namespace" | "name" | "sequence">>,
    spill: UntoldStates["spill"],
  ) {
    this.spill = spill;
    for (const { namespace, name, sequence } of events) this.sequences.set(`${namespace}/${name}`, sequence);
  }

  has(key: string): boolean {
    const sequence = this.sequences.get(key);
    if (sequence === undefined) return false;
    if (!this.spill.hasRead(sequence) || this.isInLane(key)) return true;
    this.sequences.delete(key);
    return false;
  }
}
