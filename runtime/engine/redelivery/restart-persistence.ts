import { isNewer, type ResourceVersion } from "../../base/resource-version.ts";
import type { RedeliveryRisk } from "./possible-redeliveries.ts";

/**
 * What a source brings after the machine went down. The last writes before may be missing, so that an event may have
 * been handled without a record. That lasts until all has come that the process before can have seen.
 */
export class RestartPersistence {
  private readonly lostWrites: boolean;
  private current: boolean;
  /** Nothing newer can have been handled by a process before this one; undefined where that is not known. */
  private upTo: ResourceVersion | undefined;

  /** @param lostWrites whether the last writes may be missing */
  constructor(lostWrites: boolean) {
    this.lostWrites = lostWrites;
    this.current = lostWrites;
  }

  /** Of what comes next. */
  get doubt(): RedeliveryRisk {
    return this.current ? "unnoted" : "none";
  }

  /** Of what is told of an object that stands at this, and for another reason than a change of it. */
  doubtOf(resourceVersion: ResourceVersion): RedeliveryRisk {
    const isNews = this.upTo !== undefined && isNewer(resourceVersion, this.upTo);
    return this.lostWrites && !isNews ? "unnoted" : "none";
  }

  /** The server's newest, as it was first said since this process began. */
  serverIsAt(resourceVersion: ResourceVersion): void {
    this.upTo ??= resourceVersion;
  }

  /** A change comes. */
  sees(resourceVersion: ResourceVersion): void {
    if (this.current && this.upTo !== undefined && isNewer(resourceVersion, this.upTo)) this.current = false;
  }

  /**
   * A stream has brought all up to here. It may lag behind the server that the process before this one had listened to.
   * So it proves nothing while the server's newest is not known.
   */
  hasAllUpTo(resourceVersion: ResourceVersion): void {
    if (this.upTo !== undefined && !isNewer(this.upTo, resourceVersion)) this.current = false;
  }

  /** A list has shown all up to here. What comes next is news, unless the server lags behind its own newest. */
  isListedUpTo(resourceVersion: ResourceVersion): void {
    if (this.upTo === undefined || !isNewer(this.upTo, resourceVersion)) this.current = false;
  }

  /** Time went back: the list that follows may have been told before, in an epoch whose record is lost. */
  beginAgain(): void {
    this.current = this.lostWrites;
    this.upTo = undefined;
  }

  /** What comes next is of another time than all before. */
  end(): void {
    this.current = false;
  }
}
