import { type Delivery, type DeliveryListener, eventFields, type Outcome } from "../../engine/delivery/delivery.ts";

/** Receives each attempt's end and notifies its listener. */
export interface AttemptGiver {
  ended(attempt: SandboxAttempt, outcome: Outcome | Promise<Outcome>): void;
}

/** The reason of every signal. One that `abort` creates has a stack, which costs 40 us an event. */
const ended = new DOMException("the attempt has ended", "AbortError");

/** One delivery while it is in the sandbox. */
export class SandboxAttempt {
  readonly delivery: Delivery;
  readonly listener: DeliveryListener;
  private readonly giver: AttemptGiver;
  private controller: AbortController | undefined;
  private over = false;
  private done = false;
  /** When it was sent to an executor, in monotonic milliseconds. */
  sentAt = 0;
  /** When an entry was announced in which it may begin, in monotonic milliseconds. */
  enteredAt: number | undefined;
  hasBegun = false;
  /** Bytes of it that its executor holds while it waits there. */
  waitingBytes = 0;
  /** Whether the engine has recalled it. It is given back unless it has begun. */
  isRecalled = false;
  /** Number of calls whose answer its executor has not read yet. */
  calls = 0;
  /** Characters of its log lines so far. */
  logged = 0;
  /** Metric samples so far. */
  metrics = 0;
  /** Settles once its log lines that wait for a mapped stack are written; `undefined` if no line has waited. */
  written: Promise<void> | undefined;

  constructor(delivery: Delivery, listener: DeliveryListener, giver: AttemptGiver) {
    this.delivery = delivery;
    this.listener = listener;
    this.giver = giver;
  }

  /** Marks it as inside an entry, so that its code may run. Returns whether it was not before. */
  entered(now: number): boolean {
    if (this.enteredAt !== undefined) return false;
    this.enteredAt = now;
    return true;
  }

  /** Marks that its entry ended before it began. */
  left(): void {
    this.enteredAt = undefined;
  }

  /** Marks that its code has begun or is about to. */
  begun(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.listener.begins();
  }

  get isOver(): boolean {
    return this.over;
  }

  /** Whether its handler returned successfully. */
  get isDone(): boolean {
    return this.done;
  }

  /** Aborts when the attempt ends. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.isOver) this.controller.abort(ended);
    return this.controller.signal;
  }

  /**
   * Ends it immediately, even if its listener is notified only after a stack has been mapped. The listener receives the second
   * argument, by default `outcome`. Neither promise may reject.
   */
  end(outcome: Outcome | Promise<Outcome>, reported = outcome): void {
    if (this.over) return;
    if (this.enteredAt !== undefined) this.begun();
    this.over = true;
    this.done = !(outcome instanceof Promise) && outcome.type === "ok";
    this.controller?.abort(ended);
    this.giver.ended(this, reported);
  }
}

/** Returns the event's JSON for the handler, without its objects: their bytes are passed on unchanged. */
export function eventHead({ delivery }: SandboxAttempt): Buffer {
  const { attempt, redelivered, causes, batch } = delivery;
  if (causes) {
    const { namespace, name } = delivery.object;
    const key = namespace === "" ? { name } : { namespace, name };
    return Buffer.from(JSON.stringify({ key, causes, attempt, redelivered }));
  }
  return Buffer.from(JSON.stringify(batch ? { batch } : eventFields(delivery)));
}
