import { define } from "./primordials.guest.ts";

/** Globals that would give access to memory outside the isolate's limit, or block its thread. */
const removed = ["WebAssembly", "SharedArrayBuffer", "Atomics"] as const;

/**
 * Removes what a handler must not have. Runs first, before any code of the handler. The names are already refused when a function
 * is built; here they are removed for code that reaches them dynamically.
 */
export function hardenRealm(): void {
  for (const name of removed) delete (globalThis as Record<string, unknown>)[name];

  // A resizable buffer grows outside the isolate's memory limit, so the option is ignored, as an older engine would do. The
  // `resize` method is removed too, and a buffer's `constructor` is the guarded one.
  const Unguarded = ArrayBuffer;
  const construct = Reflect.construct;
  const Guarded = new Proxy(Unguarded, {
    construct: (target, args: unknown[], newTarget) => construct(target, [args[0]], newTarget),
  });
  define(Unguarded.prototype, "constructor", { value: Guarded, writable: true, configurable: true });
  define(globalThis, "ArrayBuffer", { value: Guarded, writable: true, configurable: true });
  delete (Unguarded.prototype as { resize?: unknown }).resize;

  // V8 calls this hook whenever a stack is read. Libraries that set it keep working, without an effect.
  define(Error, "prepareStackTrace", { get: () => undefined, set: () => {}, configurable: false });
  Error.stackTraceLimit = 30;
}
