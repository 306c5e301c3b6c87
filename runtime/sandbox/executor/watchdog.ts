/** Something whose limits are looked at. */
export interface Watched {
  /** `now` is monotonic, in milliseconds. */
  check(now: number): void;
}

/** Milliseconds between two looks: a limit is found exceeded this much late at most. */
const periodMs = 10;

/**
 * One timer for all isolates at work. Looking costs 0.1 us an isolate; nothing runs while all are idle.
 * It stands in for isolated-vm's own timeouts, whose single thread one stuck isolate can block for all.
 */
export class Watchdog {
  private readonly watched = new Set<Watched>();
  private timer: NodeJS.Timeout | undefined;

  add(realm: Watched): void {
    this.watched.add(realm);
    this.timer ??= setInterval(() => this.look(), periodMs);
  }

  remove(realm: Watched): void {
    this.watched.delete(realm);
    if (this.watched.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    const now = performance.now();
    for (const realm of this.watched) realm.check(now);
  }
}
