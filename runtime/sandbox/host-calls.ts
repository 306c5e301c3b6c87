// The calls that a guest may make to the parent. The sandbox transports them; runtime/access answers them.
import type { Delivery } from "../engine/delivery/delivery.ts";

/**
 * The identity with which a guest calls, and the state that it may use. The parent sets it from its own records of the executor,
 * never from the message.
 */
export type Caller = Pick<Delivery, "function" | "trigger" | "id" | "object" | "attempt" | "state" | "staged">;

/** An answer: JSON text that is passed on unparsed, or an error that the guest rebuilds as its SDK class. */
export type HostReply =
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly error: HostCallError };

export interface HostCallError {
  /** Class name in the SDK, such as `NotFoundError` or `ForbiddenError`. */
  readonly type: string;
  readonly message: string;
  readonly status?: number;
  readonly reason?: string;
  /** Further fields of the SDK class, such as `refusedBy` and `missingRule` of ForbiddenError. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The parent's part of `ctx.kube`, `ctx.state`, `ctx.events` and `ctx.fetch`. */
export interface HostCalls {
  /**
   * Executes a call. `operation` is a name such as `kube.get`, `events.emit` or `fetch`; `args` is unvalidated JSON text from the
   * guest. Never rejects. `signal` is shared by all calls of the attempt and aborts when the attempt ends.
   */
  call(caller: Caller, operation: string, args: string, signal: AbortSignal): Promise<HostReply>;
  /**
   * Waits until a call that is refused may be answered, which had so many characters of arguments: whoever asks again at once
   * asks no more often than its function has turns. Default: at once.
   */
  refused?(caller: Caller, length: number): Promise<void> | undefined;
}

/** Log lines and metrics of guests, already limited in size and without control characters. */
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
