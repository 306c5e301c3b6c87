import type { SpilledEvent, SpillHeader } from "../../journal/batch.ts";
import type { Look, Newest } from "../delivery/delivery.ts";
import { nameOf, namespaceOf } from "../state/by-namespace.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Spill } from "./spill.ts";

/** The source of the changes that wake keys. */
export interface KeySource {
  /** Whether the known objects of a namespace are as new as the server was when this process began to read it. */
  isSettledIn(namespace: string): boolean;
  /** Whether an event of the object with this key is in memory. */
  isInLane(key: string): boolean;
  /** Called when keys can be woken again. */
  pump(): void;
}

/** The trigger without `key`: the kind of the reconciled objects, and their states. */
export class Primary {
  readonly objects: KnownObjects;
  private readonly look: Look;
  /** Whether the kind is cluster-scoped, so that its keys have no namespace. `undefined` until an object of the kind was seen. */
  private isClusterScoped: boolean | undefined;
  private readonly pendingEdits: PendingEditEvents;
  private readonly names: ReadonlyMap<string, string>;
  private readonly comparesChanges: boolean;

  /**
   * @param names of triggers and schedules, by the identity in causes
   * @param comparesChanges whether a condition reads the previous object, so that an answer is about a change, not about a state
   */
  constructor(
    objects: KnownObjects,
    look: Look,
    pendingEdits: PendingEditEvents,
    names: ReadonlyMap<string, string>,
    comparesChanges: boolean,
  ) {
    this.comparesChanges = comparesChanges;
    this.pendingEdits = pendingEdits;
    this.names = names;
    this.objects = objects;
    this.look = look;
  }

  /** Whether a key may run: its object is known, so that it is not taken for deleted, and its waiting events have ended. */
  isSettled(key: string, source: KeySource): boolean {
    const { objects, pendingEdits } = this;
    return source.isSettledIn(nameOf(key).namespace) && !objects.isPendingCreate(key) && !pendingEdits.has(key, source);
  }

  /** Whether a key has an object, as far as is known, or one whose first event waits. */
  has(key: string): boolean {
    return this.objects.knownState(key) !== undefined || this.objects.isPendingCreate(key);
  }

  /**
   * Returns the object of a key, no older than the change that woke it; `undefined` if it does not exist. Rejects if it cannot be
   * read.
   */
  async newest(key: string): Promise<Newest | undefined> {
    const { objects } = this;
    const known = objects.knownState(key);
    if (!known) return undefined;
    const body = await objects.body(key);
    if (!body) return this.look(objects.functionName, objects.trigger.name, nameOf(key));
    const { uid, resourceVersion } = objects.knownState(key) ?? known;
    return { uid, resourceVersion, body };
  }

  /** Returns the current name of a cause's trigger; the original one if the trigger is gone. */
  nameOf(identity: string): string {
    return this.names.get(identity) ?? identity;
  }

  /** Records that an object of the kind has this key. */
  saw(key: string): void {
    this.isClusterScoped = namespaceOf(key) === "";
  }

  /**
   * Converts a key to the kind's scope: a cluster-scoped object's key has no namespace, even once no object of the kind is left.
   */
  canonicalKey(key: string): string {
    if (this.isClusterScoped === undefined) {
      const { anyKey } = this.objects;
      if (anyKey !== undefined) this.saw(anyKey);
    }
    return this.isClusterScoped ? `/${nameOf(key).name}` : key;
  }

  /** Yields the keys of all existing objects. */
  *keys(): Iterable<string> {
    for (const [key] of this.objects.live("")) yield key;
  }

  /**
   * Yields the keys that times wake: those of existing objects, except objects whose state does not meet the conditions. A state
   * that the present conditions have not judged counts as one that meets them.
   */
  *timedKeys(): Iterable<string> {
    const { form } = this.objects;
    for (const [key, { matched, form: written }] of this.objects.live(""))
      if (matched !== false || this.comparesChanges || !form.answers(written)) yield key;
  }
}

/**
 * Objects with an unflagged event on disk that an edit made of a key. Their states are known already, so a run could show one
 * before its event has ended; after another edit that event would then be delivered as news.
 */
export class PendingEditEvents {
  private readonly spill: Pick<Spill, "hasRead">;
  /** The sequence of each object's last event. */
  private readonly sequences = new Map<string, number>();

  constructor(
    events: Iterable<Pick<SpillHeader | SpilledEvent, "namespace" | "name" | "sequence">>,
    spill: PendingEditEvents["spill"],
  ) {
    this.spill = spill;
    for (const { namespace, name, sequence } of events) this.sequences.set(`${namespace}/${name}`, sequence);
  }

  has(key: string, source: Pick<KeySource, "isInLane">): boolean {
    const sequence = this.sequences.get(key);
    if (sequence === undefined) return false;
    if (!this.spill.hasRead(sequence) || source.isInLane(key)) return true;
    this.sequences.delete(key);
    return false;
  }
}
