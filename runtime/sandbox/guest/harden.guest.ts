import { define } from "./primordials.guest.ts";

/** Names that would give memory outside the isolate's limit, or a way to block its thread. */
const removed = ["WebAssembly", "SharedArrayBuffer", "Atomics"] as const;

/**
 * Takes away what a handler must not have. Runs first, before any code of the handler.
 * The names are refused when a function is built; here they are gone for code that finds them by other ways.
 */
export function hardenRealm(): void {
  for (const name of removed) delete (globalThis as Record<string, unknown>)[name];

  // A resizable buffer grows outside the isolate's memory limit: the option is ignored, as an older engine would.
  // The growing method goes as well, and a buffer's own `constructor` is the guarded one.
  const Unguarded = ArrayBuffer;
  const construct = Reflect.construct;
  const Guarded = new Proxy(Unguarded, {
    construct: (target, args: unknown[], newTarget) => construct(target, [args[0]], newTarget),
  });
  define(Unguarded.prototype, "constructor", { value: Guarded, writable: true, configurable: true });
  define(globalThis, "ArrayBuffer", { value: Guarded, writable: true, configurable: true });
  delete (Unguarded.prototype as { resize?: unknown }).resize;

  // V8 calls this hook whenever a stack is read. Libraries that set it keep working, without effect.
  define(Error, "prepareStackTrace", { get: () => undefined, set: () => {}, configurable: false });
  Error.stackTraceLimit = 30;
}
