// Door: what a guest may ask of the parent. The sandbox carries it; access answers it.
import type { Delivery } from "../engine/delivery/delivery.ts";

/** In whose name a guest asks: fixed by the executor's bookkeeping in the parent, never by the message. */
export type Caller = Pick<Delivery, "function" | "trigger" | "id" | "object" | "attempt">;

/** An answer: JSON text passed on unparsed, or an error the guest rebuilds as its SDK class. */
export type HostReply =
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly error: HostCallError };

export interface HostCallError {
  /** Class name in the SDK: `NotFoundError`, `ForbiddenError`, … */
  readonly type: string;
  readonly message: string;
  readonly status?: number;
  readonly reason?: string;
  /** Further fields of the SDK class, such as `refusedBy` and `missingRule` of ForbiddenError. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The parent's half of `ctx.kube`, `ctx.events` and `ctx.fetch`. */
export interface HostCalls {
  /**
   * `operation` is such as `kube.get`, `events.emit`, `fetch`; `args` is JSON text from the guest, of unchecked shape.
   * Never rejects. `signal` is the attempt's own, the same for all its calls, and aborts when it ends.
   */
  call(caller: Caller, operation: string, args: string, signal: AbortSignal): Promise<HostReply>;
  /**
   * Waits until a call that is refused may be answered, which had so many characters of arguments: whoever asks again at once
   * asks no more often than its function has turns. Default: at once.
   */
  refused?(caller: Caller, length: number): Promise<void> | undefined;
}

/** What guests write, already cut to size and cleaned of control characters. */
export interface GuestOutput {
  /** Whether a line, a figure or an error of so many characters may be written now. Asked before anything else is done with it. Default: it may. */
  admits?(caller: Caller, what: "log" | "metric" | "error", length: number): boolean;
  log(
    caller: Caller,
    level: "debug" | "info" | "warn" | "error",
    message: string,
    fields: Record<string, unknown>,
  ): void;
  metric(
    caller: Caller,
    type: "increment" | "observe",
    name: string,
    value: number,
    labels: Record<string, string>,
  ): void;
}
