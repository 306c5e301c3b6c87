import ivm from "isolated-vm";

/** The functions of the guest's bootstrap; strings in, strings out. */
export interface GuestDoors {
  readonly isolate: ivm.Isolate;
  readonly context: ivm.Context;
  readonly pump: ivm.Reference<(batch: string) => undefined>;
  readonly drain: ivm.Reference<() => string>;
  readonly loaded: ivm.Reference<() => string>;
}

/** Makes isolates with the guest's bootstrap in place. The bootstrap is compiled once for the whole process. */
export class IsolateFactory {
  private readonly script: string;
  private readonly scriptName: string;
  /** V8's code cache of the bootstrap: made by this process, kept in its memory, read by nobody else. */
  private cachedData: ivm.ExternalCopy<ArrayBuffer> | undefined;

  constructor(script: string, scriptName: string) {
    this.script = script;
    this.scriptName = scriptName;
  }

  /** `catastrophe` is called when V8 can no longer go on in this isolate: its thread then sleeps for ever. */
  make(memoryMb: number, env: string, catastrophe: () => void): GuestDoors {
    const isolate = new ivm.Isolate({ memoryLimit: memoryMb, onCatastrophicError: catastrophe });
    // The synchronous calls below run the bootstrap alone, never code of the handler.
    const context = isolate.createContextSync();
    const script = isolate.compileScriptSync(this.script, {
      filename: this.scriptName,
      ...(this.cachedData ? { cachedData: this.cachedData } : { produceCachedData: true }),
    }) as ivm.Script & { cachedData?: ivm.ExternalCopy<ArrayBuffer> };
    this.cachedData ??= script.cachedData;
    script.runSync(context);
    script.release();
    const { global } = context;
    const doors = global.getSync("__watchfire_executor", { reference: true });
    const door = (name: string) => doors.getSync(name, { reference: true });
    const made = { isolate, context, pump: door("pump"), drain: door("drain"), loaded: door("loaded") };
    const setEnv = door("setEnv");
    setEnv.applySync(undefined, [env]);
    setEnv.release();
    doors.release();
    global.deleteSync("__watchfire_executor");
    return made as GuestDoors;
  }
}
