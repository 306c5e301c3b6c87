import type { Delivery, Outcome } from "../../dispatch/delivery/delivery.ts";
import type { Caller } from "../host-calls.ts";

/** One delivery on its way through the sandbox. */
export class Attempt {
  readonly delivery: Delivery;
  private readonly resolve: (outcome: Outcome) => void;
  private readonly begins: () => void;
  private controller: AbortController | undefined;
  private outcome: Outcome | undefined;
  /** When it was sent to an executor; monotonic milliseconds. */
  sentAt = 0;
  /** When code of it ran first. */
  enteredAt: number | undefined;
  /** Bytes of it that its executor holds while it waits there. */
  waitingBytes = 0;
  /** Whoever gave it wants it back, unless it has begun. */
  isRecalled = false;
  /** Calls whose answer its executor has not taken yet. */
  calls = 0;
  /** Characters of its log lines so far. */
  logged = 0;
  /** Metrics of it so far. */
  metrics = 0;

  constructor(delivery: Delivery, resolve: (outcome: Outcome) => void, begins: () => void = () => {}) {
    this.delivery = delivery;
    this.resolve = resolve;
    this.begins = begins;
  }

  /** Code of it is about to run. */
  entered(now: number): void {
    if (this.enteredAt !== undefined) return;
    this.enteredAt = now;
    this.begins();
  }

  get caller(): Caller {
    return this.delivery;
  }

  get isOver(): boolean {
    return this.outcome !== undefined;
  }

  /** Whether its handler returned, and nothing was wrong. */
  get isDone(): boolean {
    return this.outcome?.type === "ok";
  }

  /** Aborts when the attempt ends. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.isOver) this.controller.abort();
    return this.controller.signal;
  }

  end(outcome: Outcome): void {
    if (this.isOver) return;
    this.outcome = outcome;
    this.controller?.abort();
    this.resolve(outcome);
  }
}

const closing = Buffer.from("}");

/** The event as the handler gets it, as JSON in pieces: the object's own bytes are passed on as they came. */
export function eventSegments({ delivery }: Attempt): {
  readonly segments: readonly Buffer[];
  readonly length: number;
} {
  const { id, trigger, type, attempt, redelivered, resourceVersion, flags, body } = delivery;
  const head = JSON.stringify({ id, trigger, type, attempt, redelivered, resourceVersion, ...flags });
  const opening = Buffer.from(`${head.slice(0, -1)},"object":`);
  return { segments: [opening, body, closing], length: opening.length + body.length + closing.length };
}
