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
  /** Of the keys that are reconciled: their runs are not settled here. */
  readonly primary: KnownObjects | undefined;
  /** By number. */
  readonly views: ReadonlyMap<number, KnownObjects>;
  /** Events on disk that tell what is known of their objects. */
  readonly replays: readonly SpillHeader[];
  readonly nextSequence: () => number;
  readonly log: EngineLog;
  /** On which goes what it takes of the loop. */
  readonly time: LoopAccount;
}

/** An object that keys waited for. */
interface Awaited {
  readonly view: KnownObjects;
  readonly key: string;
  readonly cause: Cause;
  /** The first row of those that waited for it. */
  readonly row: KeyHeader;
  /** A handler may have seen it. */
  redelivered: boolean;
}

/** Bytes of bodies that are written. The others are asked for before their attempts. */
const mostBytes = 16 * 1024 * 1024;
/** And that one commit takes. */
const mostBytesAtOnce = 1024 * 1024;

/**
 * Replaces keys that waited for a run, and that are not reconciled any more, by events of the objects that woke them. An object is
 * told once, whatever number of keys it woke. The events are replays: their states are known and filtered already. Events that the
 * trigger does not ask for are left out. The keys' rows go once all events are on record: where the process ends before, it is all
 * done again, but for the events that are there.
 * @returns the events that were written, and the bytes of their bodies
 */
export async function tellWaitingKeys(
  rows: readonly KeyHeader[],
  parts: WaitingKeysParts,
): Promise<{ readonly events: readonly SpilledEvent[]; readonly bytes: number }> {
  const { commits, views, time } = parts;
  const begun = runsBefore(parts);
  const awaiting = new Awaiting(views);
  const replaced = rows.filter(({ view }) => views.has(view));
  await time.each("rows", replaced, (row) => {
    awaiting.note(row, begun.get(row.sequence) !== undefined);
    return true;
  });
  const events: SpilledEvent[] = [];
  const made = new Set(parts.replays.filter(({ redelivered }) => redelivered).map(idOf));
  const told = new Set(parts.replays.map(idOf));
  let bytes = 0;
  let [rowsNow, bytesNow] = [0, 0];
  for (const awaited of awaiting.objects.values()) {
    const body = await time.once("rows", () => bodyOf(awaited, bytes < mostBytes));
    const event = await time.once("rows", () => eventOf(awaited, body, parts.nextSequence));
    // An object that is gone may have been noted as the first of its name, and as the last.
    if (!event || made.has(idOf(event)) || (!event.redelivered && told.has(idOf(event)))) continue;
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
    commits.dropSpilled(views.get(view)?.functionName ?? "", sequence);
    if (index % mostRows === mostRows - 1) await commits.flush();
  }
  // The events bear the flag from now on, also those of states that only the runs have seen.
  for (const runs of begun.values()) for (const run of runs) settleRun(run, views.get(run.view));
  const { crowded: keys } = awaiting;
  if (keys > 0)
    parts.log.warn(
      { function: parts.functionName, keys },
      "keys had more causes than are noted, deletions may be untold",
    );
  return { events, bytes };
}

const idOf = ({ view, id }: Pick<SpilledEvent, "view" | "id">): string => `${view}/${id}`;

/** A run that had begun, and has no row any more. What it has shown stays on record until the state's own event comes. */
export function settleRun({ key, resourceVersion, ...run }: RecordedStart, view: KnownObjects | undefined): void {
  const uid = view?.stands(key)?.uid ?? "";
  view?.settle({ ...run, key, uid, shown: resourceVersion === unknownVersion ? undefined : resourceVersion });
}

/** Runs that had begun when the last process ended, by row, those whose rows are gone as well. */
function runsBefore({ startedBefore, primary, views }: WaitingKeysParts): ReadonlyMap<number, RecordedStart[]> {
  const begun = new Map<number, RecordedStart[]>();
  for (const event of startedBefore) {
    const sequence = runSequence(event.id);
    if (sequence === undefined || event.view === primary?.id || !views.has(event.view)) continue;
    begun.set(sequence, [...(begun.get(sequence) ?? []), event]);
  }
  return begun;
}

/** Knows for which objects keys waited. */
class Awaiting {
  /** Each once. */
  readonly objects = new Map<string, Awaited>();
  /** Keys that woke for more than their rows name. */
  crowded = 0;
  private readonly views: ReadonlyMap<number, KnownObjects>;
  private readonly byIdentity: ReadonlyMap<string, KnownObjects>;
  /** By key, all objects that count for it; made once a key asks for it. */
  private counting: ReadonlyMap<string, readonly Pick<Awaited, "view" | "key">[]> | undefined;

  constructor(views: WaitingKeysParts["views"]) {
    this.views = views;
    this.byIdentity = new Map([...views.values()].map((view) => [view.identity, view]));
  }

  /** Notes those whose changes woke a key, and its own where something else did. Where some are not named, all that may be. */
  note(row: KeyHeader, hasBegun: boolean): void {
    const { namespace, name, pending, redelivered } = row;
    const home = this.views.get(row.view);
    if (!home) return;
    const own = `${namespace}/${name}`;
    const { causes, begun } = pending;
    const isRun = redelivered || hasBegun || begun > 0;
    if (hasLostCauses(causes)) {
      this.crowded++;
      this.counting ??= this.allCounting();
      for (const each of [{ view: home, key: own }, ...(this.counting.get(own) ?? [])])
        this.add({ ...each, cause: unnamed, row, redelivered: true });
    }
    for (const cause of causes) {
      const changed = cause.trigger === undefined ? undefined : this.byIdentity.get(cause.trigger);
      const isChange = changed !== undefined && cause.name !== undefined;
      const key = isChange ? `${cause.namespace ?? ""}/${cause.name}` : own;
      // Where nothing changed, a run has seen it.
      const isSeen = isRun || !isChange || cause.told === true;
      const of = { view: isChange ? changed : home, key, row, redelivered: isSeen };
      // The object that had the name before goes first. One that the trigger selects again was none.
      if (cause.replaced !== undefined && cause.replaced !== of.view.stands(key)?.uid)
        this.add({ ...of, cause: { type: "Deleted", uid: cause.replaced } }, cause.replaced);
      this.add({ ...of, cause });
    }
  }

  private add(awaited: Awaited, uid = ""): void {
    const id = `${awaited.view.id}/${awaited.key}/${uid}`;
    const before = this.objects.get(id);
    if (!before) this.objects.set(id, awaited);
    else
      this.objects.set(id, { ...before, cause: awaited.cause, redelivered: before.redelivered || awaited.redelivered });
  }

  private allCounting(): ReadonlyMap<string, readonly Pick<Awaited, "view" | "key">[]> {
    const found = new Map<string, Pick<Awaited, "view" | "key">[]>();
    for (const view of this.views.values()) {
      for (const [key, keys] of view.counting()) {
        // The key of a cluster-scoped object has no namespace, whatever its owner reference stands in.
        for (const each of new Set(keys.flatMap((one) => [one, `/${nameOf(one).name}`]))) {
          const of = found.get(each) ?? [];
          found.set(each, of);
          of.push({ view, key });
        }
      }
    }
    return found;
  }
}

/** Of an object that may have woken a key: nobody knows, so that its event is flagged. */
const unnamed: Cause = { type: "Modified" };

/** The state of an object that stands, where the cause's event is of that. */
function knownOf({ view, key, cause }: Awaited) {
  const standing = view.stands(key);
  return cause.type === "Deleted" && cause.uid !== standing?.uid ? undefined : standing;
}

/** The object's body. Left out, it is asked for before the attempt, as where events of the object that wait come before with newer states. */
function bodyOf(awaited: Awaited, hasRoom: boolean): Promise<Buffer | undefined> | undefined {
  const { view, key } = awaited;
  const isWhole = view.form.keepsWholeObjects || view.trigger.object === "Metadata";
  return isWhole && hasRoom && view.isIdle(key) && knownOf(awaited) ? view.body(key) : undefined;
}

/** @returns undefined where the trigger does not ask for it, or nothing of the object is known */
function eventOf(awaited: Awaited, body: Buffer | undefined, nextSequence: () => number): SpilledEvent | undefined {
  const { view, key, cause, row, redelivered } = awaited;
  const { trigger, form, identity } = view;
  const known = knownOf(awaited);
  const type = known ? stateType(cause, trigger.events) : trigger.events.find((each) => each === "Deleted");
  const uid = known?.uid ?? cause.uid ?? view.gone(key)?.uid;
  if (!type || uid === undefined) return undefined;
  if (body && !view.matches(key, body)) return undefined;
  // Its deletion is told.
  if (known && !form.selectsNow({ ...nameOf(key), body: body ?? Buffer.alloc(0) })) return undefined;
  const { resourceVersion } = known ?? view.gone(key) ?? { resourceVersion: unknownVersion };
  const epoch = view.epochOf(key);
  const of = { trigger: identity, type, uid, resourceVersion, lastKnown: !known, selective: false, epoch };
  return {
    kind: "event",
    view: view.id,
    function: view.functionName,
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
    redelivered: redelivered || !view.isIdle(key),
    notBefore: row.notBefore,
  };
}

/** As which event a state is told; undefined where the trigger asks for none. */
function stateType({ type }: Cause, events: readonly string[]): ChangeType | undefined {
  const first = type === "Added" ? "Added" : "Modified";
  return [first, first === "Added" ? "Modified" : "Added"].find((each): each is ChangeType => events.includes(each));
}
