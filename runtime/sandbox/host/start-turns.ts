import type { Launch, Link, LinkListener } from "./link.ts";

/**
 * Starts executors in turns, at most so many at the same time: each start takes 80 ms of CPU time, so that many at once on a
 * small share of a core would leave all of them without a heartbeat. A start ends with the executor's first data.
 * @param atOnce the maximum number of starts at the same time, read before each
 */
export function inTurns(launch: Launch, atOnce: () => number): Launch {
  const waiting: WaitingLink[] = [];
  const starting = new Set<WaitingLink>();
  const next = () => {
    while (waiting.length > 0 && starting.size < Math.max(1, atOnce())) {
      const link = waiting.shift();
      if (!link) return;
      starting.add(link);
      link.start(launch);
    }
  };
  return (listener) => {
    const over = () => {
      const at = waiting.indexOf(link);
      if (at >= 0) waiting.splice(at, 1);
      if (starting.delete(link)) next();
    };
    const link = new WaitingLink(listener, over);
    waiting.push(link);
    next();
    return link;
  };
}

/** A link whose process is started later. Until then it keeps what it is asked to do. */
class WaitingLink implements Link {
  private readonly listener: LinkListener;
  private readonly over: () => void;
  private link: Link | undefined;
  private readonly writes: Parameters<Link["write"]>[] = [];
  /** Replaced at the start, so that a frame passes no further function. */
  write: Link["write"] = (...write) => this.writes.push(write);
  private isPaused = false;
  private cap: number | undefined;
  private isKilled = false;

  /** @param over called at the executor's first data, and at its end */
  constructor(listener: LinkListener, over: () => void) {
    this.listener = listener;
    this.over = over;
  }

  start(launch: Launch): void {
    const { listener } = this;
    let isFirst = true;
    const link = launch({
      opened: () => listener.opened(),
      data: (chunk) => {
        if (isFirst) this.over();
        isFirst = false;
        listener.data(chunk);
      },
      ended: (reason, detail) => {
        this.over();
        listener.ended(reason, detail);
      },
    });
    this.link = link;
    this.write = link.write.bind(link);
    if (this.cap !== undefined) link.capMemory(this.cap);
    if (this.isPaused) link.pause();
    for (const write of this.writes.splice(0)) link.write(...write);
  }

  get pid(): number | undefined {
    return this.link?.pid;
  }

  get peakMemory(): number {
    return this.link?.peakMemory ?? 0;
  }

  pause(): void {
    this.isPaused = true;
    this.link?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.link?.resume();
  }

  capMemory(bytes: number): void {
    this.cap = bytes;
    this.link?.capMemory(bytes);
  }

  mayRun(isPossible: boolean): void {
    this.link?.mayRun?.(isPossible);
  }

  kill(): void {
    if (this.link) {
      this.link.kill();
      return;
    }
    if (this.isKilled) return;
    this.isKilled = true;
    this.over();
    process.nextTick(() => {
      for (const [, taken] of this.writes.splice(0)) taken?.();
      this.listener.ended("exited", "it was not started");
    });
  }
}
