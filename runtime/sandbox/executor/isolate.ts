import ivm from "isolated-vm";
import type { Load } from "../messages.ts";

/** References to the functions of the guest's bootstrap. They take and return strings. */
export interface GuestDoors {
  readonly isolate: ivm.Isolate;
  readonly context: ivm.Context;
  readonly pump: ivm.Reference<(head: string, ...texts: string[]) => undefined>;
  readonly drain: ivm.Reference<(again: boolean, isCut?: boolean) => string>;
  readonly blame: ivm.Reference<(name: string, message: string, stack: string) => string>;
  readonly loaded: ivm.Reference<() => string>;
}

/**
 * Makes a call to the parent while the guest's code is blocked. Resolves to `1` and the result's JSON, or to `0` and the error's
 * JSON.
 */
export type Ask = (call: number, no: number, operation: string, args: string) => Promise<string>;

/** A function's compiled script. */
export type GuestScript = ivm.Script;

/** The options that an isolate is created with. */
type Bounds = Pick<Load, "memoryMb" | "env" | "refused">;

const nobody: Ask = () => new Promise(() => undefined);

/** Global under which the bootstrap exposes its functions. `begin` deletes it, after the others have been fetched. */
const doorsName = "__watchfire_executor";

type Cached = ivm.ExternalCopy<ArrayBuffer>;

type Cacheable = ivm.Script & { readonly cachedData?: Cached; readonly cachedDataRejected?: boolean };

/** Creates isolates that have run the guest's bootstrap. The bootstrap is compiled once per process. */
export class IsolateFactory {
  private readonly script: string;
  private readonly scriptName: string;
  /** V8's code cache of the bootstrap. It is created by this process and stays in its memory. */
  private cachedData: Cached | undefined;

  constructor(script: string, scriptName: string) {
    this.script = script;
    this.scriptName = scriptName;
  }

  /** Creates an isolate. `catastrophe` is called when V8 cannot continue in it; its thread then sleeps for ever. */
  make({ memoryMb, env, refused }: Bounds, catastrophe: () => void, ask: Ask = nobody): GuestDoors {
    const isolate = new ivm.Isolate({ memoryLimit: memoryMb, onCatastrophicError: catastrophe });
    // The synchronous calls below run only the bootstrap, never code of the handler.
    const context = isolate.createContextSync();
    const script = isolate.compileScriptSync(this.script, this.compileOptions) as Cacheable;
    script.runSync(context);
    const isCached = this.cachedData !== undefined && script.cachedDataRejected !== true;
    script.release();
    const { global } = context;
    const doors = global.getSync(doorsName, { reference: true });
    const door = (name: string) => doors.getSync(name, { reference: true });
    const made = {
      isolate,
      context,
      pump: door("pump"),
      drain: door("drain"),
      blame: door("blame"),
      loaded: door("loaded"),
    };
    const begin = door("begin");
    begin.applySync(undefined, [env, refused, new ivm.Reference(ask)]);
    begin.release();
    doors.release();
    // V8 rejects a cache made under other flags, and `CompilerPacing` changes one.
    if (!isCached) this.cachedData = this.cacheOf(isolate);
    return made as GuestDoors;
  }

  /**
   * Runs the bootstrap in a fresh context of an existing isolate and releases the old context. It is part of an entry and must
   * not be synchronous: code of the handler has run in this isolate, and pending work that it left would run during this.
   */
  async renew({ isolate, ...old }: GuestDoors, { env, refused }: Bounds, ask: Ask): Promise<GuestDoors> {
    for (const reference of [old.pump, old.drain, old.blame, old.context]) reference.release();
    const [context, script] = await Promise.all([
      isolate.createContext(),
      isolate.compileScript(this.script, this.compileOptions),
    ]);
    await script.run(context, { release: true });
    const { global } = context;
    const doors = await global.get(doorsName, { reference: true });
    const [pump, drain, blame, loaded, begin] = await Promise.all(
      ["pump", "drain", "blame", "loaded", "begin"].map((name) => doors.get(name, { reference: true })),
    );
    await begin?.apply(undefined, [env, refused, new ivm.Reference(ask)]);
    begin?.release();
    doors.release();
    return { isolate, context, pump, drain, blame, loaded } as unknown as GuestDoors;
  }

  /**
   * Creates a code cache of the bootstrap from an isolate in which it has just run. V8 compiles functions lazily and returns the
   * same script for the same text, so the cache contains everything that the run compiled, and later isolates do not compile it
   * again.
   */
  private cacheOf(isolate: ivm.Isolate): Cached | undefined {
    const options = { filename: this.scriptName, produceCachedData: true };
    const script = isolate.compileScriptSync(this.script, options) as Cacheable;
    script.release();
    return script.cachedData;
  }

  private get compileOptions(): ivm.ScriptInfo {
    const { cachedData } = this;
    return { filename: this.scriptName, ...(cachedData && { cachedData }) };
  }
}

/**
 * Returns the milliseconds of CPU time that an isolate has used, or 0 once it is disposed. At its memory limit an isolate is
 * disposed by its own thread at any moment, so a check of `isDisposed` could be outdated by the next line.
 */
export function cpuMsOf(isolate: ivm.Isolate): number {
  try {
    return Number(isolate.cpuTime) / 1e6;
  } catch {
    return 0;
  }
}

/** Disposes of an isolate, which may dispose of itself at the same moment. */
export function disposeOf(isolate: ivm.Isolate): void {
  try {
    isolate.dispose();
  } catch {
    // Already disposed.
  }
}

/** Returns the CPU time of the whole process so far, in milliseconds. */
export function processMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
