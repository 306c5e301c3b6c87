import { Event, EventTarget } from "event-target-shim";
import { setTimeout } from "./timers.guest.ts";

/** The standard's codes of the names used here. Other names have code 0. */
const codes: Readonly<Record<string, number>> = {
  InvalidCharacterError: 5,
  NotSupportedError: 9,
  SyntaxError: 12,
  InvalidAccessError: 15,
  TypeMismatchError: 17,
  AbortError: 20,
  QuotaExceededError: 22,
  TimeoutError: 23,
  DataCloneError: 25,
};

export class DOMException extends Error {
  readonly code: number;

  constructor(message = "", name: string = "Error") {
    super(message);
    Object.defineProperty(this, "name", { value: name, configurable: true, writable: true });
    this.code = codes[name] ?? 0;
  }
}

const key = Symbol("only AbortController makes signals");
const trigger: unique symbol = Symbol("abort");

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason: unknown = undefined;
  onabort: ((event: Event) => void) | null = null;

  constructor(permission?: unknown) {
    if (permission !== key) throw new TypeError("an AbortSignal comes from an AbortController");
    super();
    this.addEventListener("abort", (event) => this.onabort?.(event));
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }

  [trigger](reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason === undefined ? new DOMException("this operation was aborted", "AbortError") : reason;
    this.dispatchEvent(new Event("abort"));
  }

  static abort(reason?: unknown): AbortSignal {
    const signal = new AbortSignal(key);
    signal[trigger](reason);
    return signal;
  }

  static timeout(delayMs: number): AbortSignal {
    const signal = new AbortSignal(key);
    setTimeout(() => signal[trigger](new DOMException("the operation timed out", "TimeoutError")), delayMs);
    return signal;
  }

  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const all = [...signals];
    const signal = new AbortSignal(key);
    const aborted = all.find((source) => source.aborted);
    if (aborted) signal[trigger](aborted.reason);
    else for (const source of all) source.addEventListener("abort", () => signal[trigger](source.reason));
    return signal;
  }
}

export class AbortController {
  readonly signal: AbortSignal = new AbortSignal(key);

  abort(reason?: unknown): void {
    this.signal[trigger](reason);
  }
}
