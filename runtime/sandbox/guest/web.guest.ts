import { Event, EventTarget } from "event-target-shim";
import { AbortController, AbortSignal, DOMException } from "./abort.guest.ts";
import { atob, btoa, encoding } from "./bytes.guest.ts";
import { apply, define, follow } from "./primordials.guest.ts";
import { getRandomValues, randomUUID } from "./random.guest.ts";
import { CryptoKey, subtle } from "./subtle.guest.ts";
import { clearTimeout, elapsed, setInterval, setTimeout } from "./timers.guest.ts";

declare function require(specifier: string): unknown;

const libraries = () => require("./libraries.guest.ts") as typeof import("./libraries.guest.ts");

/** Defines a global that is created when first read. A handler may replace it, as in a browser. */
function lazy(name: string, make: () => unknown): void {
  const settle = (value: unknown) => define(globalThis, name, { value, writable: true, configurable: true });
  let making = false;
  define(globalThis, name, {
    get() {
      // While a library loads, it may check whether the platform provides the same feature. It gets `undefined`.
      if (making) return undefined;
      making = true;
      try {
        const value = make();
        if (value !== undefined) settle(value);
        return value;
      } finally {
        making = false;
      }
    },
    set: settle,
    configurable: true,
  });
}

function eager(name: string, value: unknown): void {
  define(globalThis, name, { value, writable: true, configurable: true });
}

/** Installs the part of the Web platform that authors of handlers expect and that needs no browser. */
export function installWeb(failed: (error: unknown) => void): void {
  lazy("TextEncoder", () => encoding().TextEncoder);
  lazy("TextDecoder", () => encoding().TextDecoder);
  lazy("URL", () => libraries().whatwgUrl().URL);
  lazy("URLSearchParams", () => libraries().whatwgUrl().URLSearchParams);
  lazy("structuredClone", () => {
    const { default: clone } = libraries().structuredClone();
    return (value: unknown) => {
      try {
        return clone(value);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        throw new DOMException("functions, symbols and the like cannot be cloned", "DataCloneError");
      }
    };
  });
  eager("atob", atob);
  eager("btoa", btoa);
  eager("Event", Event);
  eager("EventTarget", EventTarget);
  eager("AbortController", AbortController);
  eager("AbortSignal", AbortSignal);
  eager("DOMException", DOMException);
  eager("setTimeout", setTimeout);
  eager("setInterval", setInterval);
  eager("clearTimeout", clearTimeout);
  eager("clearInterval", clearTimeout);
  eager("queueMicrotask", (callback: () => void) => {
    if (typeof callback !== "function") throw new TypeError("queueMicrotask takes a function");
    follow(
      undefined,
      () => {
        try {
          apply(callback, undefined, []);
        } catch (error) {
          failed(error);
        }
      },
      failed,
    );
  });
  eager("performance", { now: elapsed, timeOrigin: Date.now() });
  eager("crypto", { getRandomValues, randomUUID, subtle });
  eager("CryptoKey", CryptoKey);
}
