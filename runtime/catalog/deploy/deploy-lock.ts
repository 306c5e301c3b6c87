import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { ApiObjects, AppliedObject, ClusterObject } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";

/** Annotation on the index of `default`: the holder of the lock, and the time of its last renewal. */
const lockAnnotation = "watchfire.dev/deploying";

/** Second annotation: the set that the holder deploys. Absent if a version without sets holds the lock. */
const setAnnotation = "watchfire.dev/deploying-set";

/** Time without renewal after which a lock may be taken over, in milliseconds: the time limit of three requests. */
const termMs = 30_000;

/** Age of the last renewal after which the holder renews the lock before it writes, in milliseconds. */
const renewMs = 5_000;

/**
 * Age of the last renewal after which the holder must not write, in milliseconds: a request that it begins ends within `termMs`.
 */
const quietMs = 15_000;

/** Longest wait for deployments of other sets, in milliseconds: about ten of them. */
const othersMs = 120_000;

/** Interval at which the index is read while another holds the lock, in milliseconds. */
const lookMs = 1_000;

interface LockParts {
  readonly api: ApiObjects;
  readonly clock: Clock;
  /** The holder's name, for messages. */
  readonly holder: string;
  /** The set that is deployed. */
  readonly set: string;
}

/** Whether a deployment is in progress, or was killed. */
export const isLocked = (index: ClusterObject): boolean => lockAnnotation in index.metadata.annotations;

/**
 * Waits while another deployment is in progress: one of another set until it ends, and any until its holder has not renewed the
 * lock for a term, which means that it was killed. The holder's clock is not used. `index` holds the lock; `waiting` is called
 * once, with the holder's name and the longest wait.
 * @returns the version of an abandoned lock
 * @throws WatchfireError WF_DEPLOYED_CONFLICT if the other deployment is of the same set, and continues or ends
 */
export async function untilAbandoned(
  { api, clock, set }: LockParts,
  index: AppliedObject,
  waiting: (who: string, limitMs: number) => void,
): Promise<string | undefined> {
  const began = clock.monotonic();
  let unchangedSince = began;
  let [seen] = await api.find([index]);
  if (seen && isLocked(seen)) waiting(holderOf(seen), isOf(seen, set) ? termMs : othersMs);
  while (seen && isLocked(seen) && clock.monotonic() - unchangedSince < termMs) {
    await pause(clock, lookMs);
    const [now] = await api.find([index]);
    if (now?.metadata.resourceVersion === seen.metadata.resourceVersion) continue;
    if (isOf(seen, set) || clock.monotonic() - began >= othersMs) {
      throw new WatchfireError("WF_DEPLOYED_CONFLICT", {
        what: `another deployment is under way, or just ended: ${holderOf(seen)}`,
      });
    }
    seen = now;
    unchangedSince = clock.monotonic();
  }
  return seen && isLocked(seen) ? seen.metadata.resourceVersion : undefined;
}

/** Whether the lock's holder deploys this set. Versions without sets deploy everything. */
const isOf = ({ metadata: { annotations } }: ClusterObject, set: string): boolean =>
  (annotations[setAnnotation] ?? set) === set;

/** Returns the holder's name, the time of its last renewal, and its set. */
function holderOf({ metadata: { annotations } }: ClusterObject): string {
  const set = annotations[setAnnotation];
  return `${annotations[lockAnnotation] ?? ""}${set === undefined ? "" : `, of the set ${set}`}`;
}

/**
 * Lock on the deployments of a runtime: an annotation on the index of the set `default`. Every change of that index is conditional
 * on the version that the holder wrote last, so only one of two deployments proceeds, and a holder that was overtaken gets an
 * error.
 */
export class DeployLock {
  private readonly parts: LockParts;
  private readonly before: ClusterObject | undefined;
  private index: AppliedObject;
  private written: ClusterObject | undefined;
  /** Start of the last renewal, by both clocks: one of them may stand still while a machine sleeps. */
  private at = { monotonic: 0, wall: 0 };
  private renewing: Promise<void> | undefined;

  private constructor(parts: LockParts, index: AppliedObject, before: ClusterObject | undefined) {
    this.parts = parts;
    this.index = index;
    this.before = before;
  }

  /** Takes the lock, if the index has not changed since it was read. @throws WatchfireError WF_DEPLOYED_CONFLICT */
  static async take(parts: LockParts, empty: AppliedObject, before: ClusterObject | undefined): Promise<DeployLock> {
    const { data = {}, binaryData } = (before && readConfigMap(before)) ?? {};
    const lock = new DeployLock(parts, { ...empty, data, ...(binaryData && { binaryData }) }, before);
    await lock.write(true);
    return lock;
  }

  /** Must be awaited before each write. @throws WatchfireError WF_DEPLOYED_CONFLICT if another deployment has taken over */
  async held(): Promise<void> {
    if (this.age() < renewMs) return;
    this.renewing ??= this.write(true).finally(() => {
      this.renewing = undefined;
    });
    await this.renewing;
    if (this.age() >= quietMs) {
      throw new WatchfireError("WF_DEPLOYED_CONFLICT", {
        what: "the lock could not be renewed in time, since the API server is slow",
      });
    }
  }

  /** Writes new data into the index and keeps the lock. If that fails, `release` leaves the old data. */
  async set(data: Readonly<Record<string, string>>): Promise<void> {
    const { binaryData: _, ...index } = this.index;
    await this.write(true, { ...index, data });
  }

  /**
   * Releases the lock; the index keeps the data last set. If nothing was deployed, an index that was created for the lock alone is
   * deleted. Otherwise it stays, so that whoever looked before has to look again.
   */
  async release(isDeployed: boolean): Promise<void> {
    const { data } = this.index;
    const made = !isDeployed && this.before === undefined && Object.keys(data ?? {}).length === 0;
    if (made && this.written) await this.parts.api.delete([this.written], true);
    else await this.write(false);
  }

  private async write(locked: boolean, next = this.index): Promise<void> {
    const { api, clock, holder, set } = this.parts;
    const at = { monotonic: clock.monotonic(), wall: clock.now() };
    const who = { [lockAnnotation]: `${holder}, ${new Date(at.wall).toISOString()}`, [setAnnotation]: set };
    const annotations = locked ? who : {};
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
