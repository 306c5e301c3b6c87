import ivm from "isolated-vm";
import type { Load } from "../messages.ts";

/** The functions of the guest's bootstrap; strings in, strings out. */
export interface GuestDoors {
  readonly isolate: ivm.Isolate;
  readonly context: ivm.Context;
  readonly pump: ivm.Reference<(head: string, ...texts: string[]) => undefined>;
  readonly drain: ivm.Reference<(again: boolean, isCut?: boolean) => string>;
  readonly blame: ivm.Reference<(name: string, message: string, stack: string) => string>;
  readonly loaded: ivm.Reference<() => string>;
}

/** Asks the parent while the guest's code stands still; gives `1` and JSON of the result, or `0` and JSON of an error. */
export type Ask = (call: number, no: number, operation: string, args: string) => Promise<string>;

/** A compiled script of a function. */
export type GuestScript = ivm.Script;

/** What an isolate begins with. */
type Bounds = Pick<Load, "memoryMb" | "env" | "refused">;

const nobody: Ask = () => new Promise(() => undefined);

/** Where the bootstrap leaves its doors. `begin` takes them away, once the others are taken. */
const doorsName = "__watchfire_executor";

type Cached = ivm.ExternalCopy<ArrayBuffer>;

type Cacheable = ivm.Script & { readonly cachedData?: Cached; readonly cachedDataRejected?: boolean };

/** Makes isolates with the guest's bootstrap in place. The bootstrap is compiled once for the whole process. */
export class IsolateFactory {
  private readonly script: string;
  private readonly scriptName: string;
  /** V8's code cache of the bootstrap: made by this process, kept in its memory, read by nobody else. */
  private cachedData: Cached | undefined;

  constructor(script: string, scriptName: string) {
    this.script = script;
    this.scriptName = scriptName;
  }

  /** `catastrophe` is called when V8 can no longer go on in this isolate: its thread then sleeps for ever. */
  make({ memoryMb, env, refused }: Bounds, catastrophe: () => void, ask: Ask = nobody): GuestDoors {
    const isolate = new ivm.Isolate({ memoryLimit: memoryMb, onCatastrophicError: catastrophe });
    // The synchronous calls below run the bootstrap alone, never code of the handler.
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
    // V8 refuses a cache that was made under other flags, and `CompilerPacing` changes one.
    if (!isCached) this.cachedData = this.cacheOf(isolate);
    return made as GuestDoors;
  }

  /**
   * The bootstrap in a fresh context of an isolate, whose last context is let go of. Part of an entry, and never
   * synchronous. Code of the handler has run in this isolate, and work that it left behind would run with this.
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
   * The code cache of the bootstrap, from an isolate in which it has just run. V8 compiles a function when it is first
   * called, and gives the same script for the same text. So the cache has what the run has compiled, and no isolate
   * after this one compiles it again.
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
 * Milliseconds of CPU time that an isolate has used; 0 once it is disposed of. At its memory limit its own thread disposes
 * of it, at any moment: what `isDisposed` says may be wrong by the next line.
 */
export function cpuMsOf(isolate: ivm.Isolate): number {
  try {
    return Number(isolate.cpuTime) / 1e6;
  } catch {
    return 0;
  }
}

/** Disposes of an isolate, which may do so itself at the same moment. */
export function disposeOf(isolate: ivm.Isolate): void {
  try {
    isolate.dispose();
  } catch {
    // It was first.
  }
}

/** CPU time of the whole process so far. */
export function processMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
