import type { EndedRun } from "../observe/run-log.ts";

/** Maximum bytes of all bodies. */
const mostBytes = 8 * 2 ** 20;

/** The runs of one function that ended in the same way, oldest first. */
interface BodyShare {
  readonly runs: Map<string, EndedRun>;
  bytes: number;
}

/**
 * The objects that the last runs received, in memory: a person can see what a handler received, and save it as a fixture. They are
 * never written. If there is no room, the oldest runs of the largest share are removed; a function's failures have their own share.
 */
export class RecentBodies {
  private readonly most: number;
  /** By function, and whether the run failed. */
  private readonly shares = new Map<string, BodyShare>();
  private bytes = 0;

  constructor(most = mostBytes) {
    this.most = most;
  }

  /** Takes the runs of a batch that have bodies. */
  add(runs: readonly EndedRun[]): void {
    for (const run of runs) {
      if (!run.body) continue;
      this.remove(run.function, run.id);
      const key = shareKey(run.function, run.outcome.type === "ok");
      const share = this.shares.get(key) ?? { runs: new Map<string, EndedRun>(), bytes: 0 };
      this.shares.set(key, share);
      share.runs.set(run.id, run);
      share.bytes += sizeOf(run);
      this.bytes += sizeOf(run);
    }
    while (this.bytes > this.most) {
      let largest: BodyShare | undefined;
      for (const share of this.shares.values()) if (share.bytes > (largest?.bytes ?? 0)) largest = share;
      const [oldest] = largest?.runs.values() ?? [];
      if (!oldest) return;
      this.remove(oldest.function, oldest.id);
    }
  }

  /** Returns the last attempt of a run, with its body. */
  find(functionName: string, id: string): EndedRun | undefined {
    const runs = [false, true].map((isOk) => this.shares.get(shareKey(functionName, isOk))?.runs.get(id));
    return runs.find((run) => run !== undefined);
  }

  private remove(functionName: string, id: string): void {
    for (const isOk of [false, true]) {
      const key = shareKey(functionName, isOk);
      const share = this.shares.get(key);
      const run = share?.runs.get(id);
      if (!share || !run) continue;
      share.runs.delete(id);
      share.bytes -= sizeOf(run);
      this.bytes -= sizeOf(run);
      if (share.runs.size === 0) this.shares.delete(key);
    }
  }
}

const shareKey = (functionName: string, isOk: boolean): string => `${isOk ? "ok" : "failed"} ${functionName}`;

/** Bytes of a run, including its fields. */
const sizeOf = ({ body, oldBody }: EndedRun): number => 500 + (body?.length ?? 0) + (oldBody?.length ?? 0);
