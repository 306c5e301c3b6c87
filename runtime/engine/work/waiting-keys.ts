import { type Cause, type KeyHeader, runSequence, type SpilledEvent, type SpillHeader } from "../../journal/batch.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import { mostRows } from "../commit/commit-share.ts";
import type { Commits } from "../commit/commits.ts";
import { eventId } from "../delivery/delivery.ts";
import type { EngineLog } from "../delivery/observer.ts";
import type { RecordedStart } from "../redelivery/started-before.ts";
import { nameOf } from "../state/by-namespace.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import { hasLostCauses, unknownVersion } from "./key-lane.ts";

interface WaitingKeysParts {
  readonly functionName: string;
  readonly commits: Commits;
  readonly startedBefore: Iterable<RecordedStart>;
  /** The known objects of the keys that are still reconciled; their runs are not settled here. */
  readonly primary: KnownObjects | undefined;
  /** By number. */
  readonly known: ReadonlyMap<number, KnownObjects>;
  /** Events on disk whose states are known already. */
  readonly replays: readonly SpillHeader[];
  readonly nextSequence: () => number;
  readonly log: EngineLog;
  /** Is charged for the event loop's time that the conversion takes. */
  readonly time: LoopAccount;
}

/** An object that keys waited for. */
interface Awaited {
  readonly objects: KnownObjects;
  readonly key: string;
  readonly cause: Cause;
  /** The first row of a key that waited for it. */
  readonly row: KeyHeader;
  /** Whether a handler may have seen it. */
  redelivered: boolean;
}

/** Limit on the bytes of bodies that are written. The other objects are fetched before their attempts. */
const mostBytes = 16 * 1024 * 1024;
/** Limit on the bytes of bodies in one commit. */
const mostBytesAtOnce = 1024 * 1024;

/**
 * Replaces waiting keys that are no longer reconciled by events of the objects that woke them. An object gets one event, however
 * many keys it woke. The events are replays, since their states are known and filtered already. Events that the trigger does not
 * subscribe to are left out. The keys' rows are deleted once all events are on record. If the process ends before, all of it is
 * repeated, except for the events that were written.
 * @returns the events that were written, and the bytes of their bodies
 */
export async function convertKeysToEvents(
  rows: readonly KeyHeader[],
  parts: WaitingKeysParts,
): Promise<{ readonly events: readonly SpilledEvent[]; readonly bytes: number }> {
  const { commits, known, time } = parts;
  const begun = runsBefore(parts);
  const awaiting = new Awaiting(known);
  const replaced = rows.filter(({ view }) => known.has(view));
  await time.each("rows", replaced, (row) => {
    awaiting.note(row, begun.get(row.sequence) !== undefined);
    return true;
  });
  const events: SpilledEvent[] = [];
  const made = new Set(parts.replays.filter(({ redelivered }) => redelivered).map(idOf));
  const written = new Set(parts.replays.map(idOf));
  let bytes = 0;
  let [rowsNow, bytesNow] = [0, 0];
  for (const awaited of awaiting.objects.values()) {
    const body = await time.once("rows", () => bodyOf(awaited, bytes < mostBytes));
    const event = await time.once("rows", () => eventOf(awaited, body, parts.nextSequence));
    // A deleted object may have been noted as the first of its name, and as the last.
    if (!event || made.has(idOf(event)) || (!event.redelivered && written.has(idOf(event)))) continue;
    made.add(idOf(event));
    bytes += event.body.length;
    events.push(event);
    commits.putSpilled(event);
    bytesNow += event.body.length;
    if (++rowsNow < mostRows && bytesNow < mostBytesAtOnce) continue;
    [rowsNow, bytesNow] = [0, 0];
    await commits.flush();
  }
  if (events.length > 0) await commits.flush();
  for (const [index, { view, sequence }] of replaced.entries()) {
    commits.dropSpilled(known.get(view)?.functionName ?? "", sequence);
    if (index % mostRows === mostRows - 1) await commits.flush();
  }
  // The events are flagged from now on, including those of states that only the runs have seen.
  for (const runs of begun.values()) for (const run of runs) settleRun(run, known.get(run.view));
  const { crowded: keys } = awaiting;
  if (keys > 0)
    parts.log.warn(
      { function: parts.functionName, keys },
      "some keys had more causes than are stored, and deletions may not be delivered",
    );
  return { events, bytes };
}

const idOf = ({ view, id }: Pick<SpilledEvent, "view" | "id">): string => `${view}/${id}`;

/** Settles a run that had begun and no longer has a row. The state that it showed stays on record until the state's own event. */
export function settleRun({ key, resourceVersion, ...run }: RecordedStart, objects: KnownObjects | undefined): void {
  const uid = objects?.knownState(key)?.uid ?? "";
  objects?.settle({ ...run, key, uid, shown: resourceVersion === unknownVersion ? undefined : resourceVersion });
}

/** Returns the runs that had begun when the last process ended, by row, including those whose rows are gone. */
function runsBefore({ startedBefore, primary, known }: WaitingKeysParts): ReadonlyMap<number, RecordedStart[]> {
  const begun = new Map<number, RecordedStart[]>();
  for (const event of startedBefore) {
    const sequence = runSequence(event.id);
    if (sequence === undefined || event.view === primary?.id || !known.has(event.view)) continue;
    begun.set(sequence, [...(begun.get(sequence) ?? []), event]);
  }
  return begun;
}

/** Collects the objects for which keys waited. */
class Awaiting {
  /** Each object once. */
  readonly objects = new Map<string, Awaited>();
  /** The number of keys with more causes than their rows name. */
  crowded = 0;
  private readonly known: ReadonlyMap<number, KnownObjects>;
  private readonly byIdentity: ReadonlyMap<string, KnownObjects>;
  /** Index from key to all objects that map to it; built on first use. */
  private counting: ReadonlyMap<string, readonly Pick<Awaited, "objects" | "key">[]> | undefined;

  constructor(known: WaitingKeysParts["known"]) {
    this.known = known;
    this.byIdentity = new Map([...known.values()].map((objects) => [objects.identity, objects]));
  }

  /**
   * Adds the objects whose changes woke a key, and the key's own if something else did. If causes were dropped, adds all
   * candidates.
   */
  note(row: KeyHeader, hasBegun: boolean): void {
    const { namespace, name, pending, redelivered } = row;
    const rowView = this.known.get(row.view);
    if (!rowView) return;
    const own = `${namespace}/${name}`;
    const { causes, begun } = pending;
    const isRun = redelivered || hasBegun || begun > 0;
    if (hasLostCauses(causes)) {
      this.crowded++;
      this.counting ??= this.allCounting();
      for (const each of [{ objects: rowView, key: own }, ...(this.counting.get(own) ?? [])])
        this.add({ ...each, cause: unnamed, row, redelivered: true });
    }
    for (const cause of causes) {
      const changed = cause.trigger === undefined ? undefined : this.byIdentity.get(cause.trigger);
      const isChange = changed !== undefined && cause.name !== undefined;
      const key = isChange ? `${cause.namespace ?? ""}/${cause.name}` : own;
      // If no object changed, a run has seen the state.
      const isSeen = isRun || !isChange || cause.delivered === true;
      const of = { objects: isChange ? changed : rowView, key, row, redelivered: isSeen };
      // The earlier object of the name comes first. For an object that the trigger selects again there was no other.
      if (cause.replaced !== undefined && cause.replaced !== of.objects.knownState(key)?.uid)
        this.add({ ...of, cause: { type: "Deleted", uid: cause.replaced } }, cause.replaced);
      this.add({ ...of, cause });
    }
  }

  private add(awaited: Awaited, uid = ""): void {
    const id = `${awaited.objects.id}/${awaited.key}/${uid}`;
    const before = this.objects.get(id);
    if (!before) this.objects.set(id, awaited);
    else
      this.objects.set(id, { ...before, cause: awaited.cause, redelivered: before.redelivered || awaited.redelivered });
  }

  private allCounting(): ReadonlyMap<string, readonly Pick<Awaited, "objects" | "key">[]> {
    const found = new Map<string, Pick<Awaited, "objects" | "key">[]>();
    for (const objects of this.known.values()) {
      for (const [key, keys] of objects.counting()) {
        // The key of a cluster-scoped object has no namespace, whatever the namespace of the object with the owner reference.
        for (const each of new Set(keys.flatMap((one) => [one, `/${nameOf(one).name}`]))) {
          const of = found.get(each) ?? [];
          found.set(each, of);
          of.push({ objects, key });
        }
      }
    }
    return found;
  }
}

/** The cause of an object that may have woken a key. Because that is uncertain, its event is flagged. */
const unnamed: Cause = { type: "Modified" };

/** Returns the known state of an object that exists, if the cause's event is about it. */
function knownOf({ objects, key, cause }: Awaited) {
  const known = objects.knownState(key);
  return cause.type === "Deleted" && cause.uid !== known?.uid ? undefined : known;
}

/**
 * Reads the object's body. Without one the object is fetched before the attempt, as it is if waiting events of it deliver newer
 * states first.
 */
function bodyOf(awaited: Awaited, hasRoom: boolean): Promise<Buffer | undefined> | undefined {
  const { objects, key } = awaited;
  const isWhole = objects.form.keepsWholeObjects || objects.trigger.object === "Metadata";
  return isWhole && hasRoom && objects.isIdle(key) && knownOf(awaited) ? objects.body(key) : undefined;
}

/** Builds the event; `undefined` if the trigger does not subscribe to it, or nothing is known of the object. */
function eventOf(awaited: Awaited, body: Buffer | undefined, nextSequence: () => number): SpilledEvent | undefined {
  const { objects, key, cause, row, redelivered } = awaited;
  const { trigger, form, identity } = objects;
  const known = knownOf(awaited);
  const type = known ? stateType(cause, trigger.events) : trigger.events.find((each) => each === "Deleted");
  const uid = known?.uid ?? cause.uid ?? objects.gone(key)?.uid;
  if (!type || uid === undefined) return undefined;
  if (body && !objects.matches(key, body)) return undefined;
  // Its deletion is delivered instead.
  if (known && !form.selectsNow({ ...nameOf(key), body: body ?? Buffer.alloc(0) })) return undefined;
  const { resourceVersion } = known ?? objects.gone(key) ?? { resourceVersion: unknownVersion };
  const epoch = objects.epochOf(key);
  const of = { trigger: identity, type, uid, resourceVersion, lastKnown: !known, selective: false, epoch };
  return {
    kind: "event",
    view: objects.id,
    function: objects.functionName,
    trigger: trigger.name,
    ...nameOf(key),
    uid,
    resourceVersion,
    type,
    id: eventId(of),
    flags: { synthetic: true, reason: "edited", ...(known ? {} : { finalStateUnknown: true }) },
    deletedBy: resourceVersion,
    body: body ?? Buffer.alloc(0),
    oldBody: undefined,
    form: form.ofEvents,
    receivedAt: row.receivedAt,
    sequence: nextSequence(),
    replayed: true,
    redelivered: redelivered || !objects.isIdle(key),
    notBefore: row.notBefore,
  };
}

/** The type under which a state is delivered; `undefined` if the trigger subscribes to neither. */
function stateType({ type }: Cause, events: readonly string[]): ChangeType | undefined {
  const first = type === "Added" ? "Added" : "Modified";
  return [first, first === "Added" ? "Modified" : "Added"].find((each): each is ChangeType => events.includes(each));
}
