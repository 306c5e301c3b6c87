import { readFileSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import type { Clock, Timer } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { frameAt } from "../observe/code-frame.ts";
import type { Logger } from "../observe/log.ts";

/**
 * Delay before a check, in milliseconds. A compiler uses a core for a second or more, so several changes share one check, and a
 * start is over by then.
 */
const quietMs = 1_000;

/** A function whose handler's types are checked. */
interface CheckedFunction {
  readonly name: string;
  /** Absolute path. */
  readonly handler: string;
  /** True if it cannot be built, which has been reported already; the compiler would only repeat it. */
  readonly isBroken: boolean;
}

export interface TypeWatchOptions {
  /** Returns the present type errors of the folder; stops when the signal aborts. */
  readonly check: (handlers: readonly string[], signal: AbortSignal) => Promise<readonly WatchfireError[]>;
  readonly functions: () => readonly CheckedFunction[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** A fault of a check. */
interface TypeFault {
  readonly function?: string;
  /** The message, and the lines of the file. */
  readonly text: string;
}

/**
 * Warns about type errors while the code runs all the same. One check runs at a time; each error is reported once while it lasts.
 */
export class TypeWatch {
  private readonly options: TypeWatchOptions;
  private timer: Timer | undefined;
  private checking = false;
  private stale = false;
  private logged = new Set<string>();
  /** The present faults as they were logged, each with its function and its code. */
  faults: readonly TypeFault[] = [];

  constructor(options: TypeWatchOptions) {
    this.options = options;
    options.signal.addEventListener("abort", () => this.timer?.cancel());
  }

  /** Reports that the folder's code may have changed. */
  changed(): void {
    const { clock, signal } = this.options;
    this.timer?.cancel();
    if (!signal.aborted) this.timer = clock.after(quietMs, () => void this.run(), { unref: true });
  }

  private async run(): Promise<void> {
    this.stale = this.checking;
    if (this.checking) return;
    this.checking = true;
    try {
      await this.look();
    } finally {
      this.checking = false;
    }
    if (this.stale) this.changed();
  }

  private async look(): Promise<void> {
    const { check, functions, signal, log } = this.options;
    const now = new Set<string>();
    const faults: TypeFault[] = [];
    try {
      const checked = functions();
      const handlers = checked.map(({ handler }) => handler);
      for (const fault of await check(handlers, signal)) {
        const owner = checked.find(({ handler }) => isBelow(dirname(handler), fault.detail.place?.file ?? ""));
        if (owner?.isBroken) continue;
        now.add(fault.message);
        const error = [fault.message, frameOf(fault)].filter((part) => part !== undefined).join("\n");
        faults.push({ ...(owner && { function: owner.name }), text: error });
        if (this.logged.has(fault.message)) continue;
        log.warn({ ...(owner && { function: owner.name }), error }, "type errors found, the code runs anyway");
      }
      if (this.logged.size > 0 && now.size === 0) log.info({}, "no type errors any more");
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof WatchfireError)) throw error;
      now.add(error.message);
      faults.push({ text: error.message });
      if (!this.logged.has(error.message)) log.warn({ error: error.message }, "types are not checked");
    }
    this.logged = now;
    this.faults = faults;
  }
}

const isBelow = (folder: string, file: string): boolean => resolve(file).startsWith(`${resolve(folder)}${sep}`);

/** Returns the code at a fault, as on disk; `undefined` if it cannot be shown. */
function frameOf({ detail: { place } }: WatchfireError): string | undefined {
  if (place?.line === undefined || place.column === undefined) return undefined;
  try {
    return frameAt(readFileSync(place.file, "utf8"), place.line, place.column);
  } catch {
    return undefined; // the file is gone by now
  }
}
