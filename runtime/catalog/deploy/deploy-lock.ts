import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { ApiObjects, AppliedObject, ClusterObject } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";

/** On the index: who deploys, and when they last said so. */
const lockAnnotation = "watchfire.dev/deploying";

/** After so long without a word from its holder a lock is taken over, in milliseconds: three requests' time limit. */
const termMs = 30_000;

/** A holder says so again when it is about to write and its last word is older than this, in milliseconds. */
const renewMs = 5_000;

/** A holder of which nothing was heard for this long writes nothing: a request that it begins ends within the term. */
const quietMs = 15_000;

/** How often the index is looked at while another holds it, in milliseconds. */
const lookMs = 1_000;

interface LockParts {
  readonly api: ApiObjects;
  readonly clock: Clock;
  /** For people: who holds it. */
  readonly holder: string;
}

/** Whether somebody deploys, or was killed while deploying. */
export const isLocked = (index: ClusterObject): boolean => lockAnnotation in index.metadata.annotations;

/**
 * Waits while somebody else deploys, until they have been silent for a term: they were killed, and left the lock behind.
 * Their clock is not asked. `index` is where it lies; `waiting` is told that it takes a while, and who it is.
 * @throws WatchfireError WF_DEPLOYED_CONFLICT where they go on, or end
 */
export async function untilAbandoned(
  { api, clock }: LockParts,
  index: AppliedObject,
  waiting: (who: string) => void,
): Promise<void> {
  const [first] = await api.find([index]);
  if (!first || !isLocked(first)) return;
  const who = first.metadata.annotations[lockAnnotation] ?? "";
  waiting(who);
  for (const began = clock.monotonic(); clock.monotonic() - began < termMs; ) {
    await pause(clock, lookMs);
    const [now] = await api.find([index]);
    if (now?.metadata.resourceVersion === first.metadata.resourceVersion) continue;
    throw new WatchfireError("WF_DEPLOYED_CONFLICT", {
      what: `another deployment is under way, or just ended: ${who}`,
    });
  }
}

/**
 * The right to change a deployment, held by an annotation on its index. Every change of the index is made in the place
 * of the version that the holder wrote last. So only one of two goes on, and a holder that was overtaken is told.
 */
export class DeployLock {
  private readonly parts: LockParts;
  private readonly before: ClusterObject | undefined;
  private index: AppliedObject;
  private written: ClusterObject | undefined;
  /** When the last word was begun to be written, by both clocks: one of them may stand still while a machine sleeps. */
  private at = { monotonic: 0, wall: 0 };
  private renewing: Promise<void> | undefined;

  private constructor(parts: LockParts, index: AppliedObject, before: ClusterObject | undefined) {
    this.parts = parts;
    this.index = index;
    this.before = before;
  }

  /** Takes it, if the index is still as it was seen. @throws WatchfireError WF_DEPLOYED_CONFLICT */
  static async take(parts: LockParts, empty: AppliedObject, before: ClusterObject | undefined): Promise<DeployLock> {
    const { data = {}, binaryData } = (before && readConfigMap(before)) ?? {};
    const lock = new DeployLock(parts, { ...empty, data, ...(binaryData && { binaryData }) }, before);
    await lock.write(true);
    return lock;
  }

  /** To be awaited before each write. @throws WatchfireError WF_DEPLOYED_CONFLICT where somebody else has taken over */
  async held(): Promise<void> {
    if (this.age() < renewMs) return;
    this.renewing ??= this.write(true).finally(() => {
      this.renewing = undefined;
    });
    await this.renewing;
    if (this.age() >= quietMs) {
      throw new WatchfireError("WF_DEPLOYED_CONFLICT", { what: "the API server is too slow to keep others out" });
    }
  }

  /** Gives the index its new data, and keeps the lock. Where that fails, the old data is what `release` leaves. */
  async set(data: Readonly<Record<string, string>>): Promise<void> {
    const { binaryData: _, ...index } = this.index;
    await this.write(true, { ...index, data });
  }

  /** Ends it: the index is as it was set last. One that was made for the lock alone goes with it. */
  async release(): Promise<void> {
    const { data } = this.index;
    const made = this.before === undefined && Object.keys(data ?? {}).length === 0;
    if (made && this.written) await this.parts.api.delete([this.written]);
    else await this.write(false);
  }

  private async write(locked: boolean, next = this.index): Promise<void> {
    const { api, clock, holder } = this.parts;
    const at = { monotonic: clock.monotonic(), wall: clock.now() };
    const annotations = locked ? { [lockAnnotation]: `${holder}, ${new Date(at.wall).toISOString()}` } : {};
    const { metadata, ...index } = next;
    const version = (this.written ?? this.before)?.metadata.resourceVersion;
    this.written = await api.replace({ ...index, metadata: { ...metadata, annotations } } as AppliedObject, version);
    this.index = next;
    this.at = at;
  }

  private age(): number {
    const { clock } = this.parts;
    return Math.max(clock.monotonic() - this.at.monotonic, clock.now() - this.at.wall);
  }
}
