import { type Delivery, type DeliveryListener, eventFields, type Outcome } from "../../engine/delivery/delivery.ts";
import type { Caller } from "../host-calls.ts";

/** Hears of each attempt's end, and sees to it that its listener does. */
export interface AttemptGiver {
  ended(attempt: SandboxAttempt, outcome: Outcome | Promise<Outcome>): void;
}

/** One delivery on its way through the sandbox. */
export class SandboxAttempt {
  readonly delivery: Delivery;
  readonly listener: DeliveryListener;
  private readonly giver: AttemptGiver;
  private controller: AbortController | undefined;
  private over = false;
  private done = false;
  /** When it was sent to an executor; monotonic milliseconds. */
  sentAt = 0;
  /** When an entry was announced in which it may begin. */
  enteredAt: number | undefined;
  hasBegun = false;
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
  /** Resolves once its lines are written that wait for a stack's places, or rejects; `undefined` while none has waited. */
  written: Promise<void> | undefined;

  constructor(delivery: Delivery, listener: DeliveryListener, giver: AttemptGiver) {
    this.delivery = delivery;
    this.listener = listener;
    this.giver = giver;
  }

  /** Its code may run from now on. Gives whether it could not before. */
  entered(now: number): boolean {
    if (this.enteredAt !== undefined) return false;
    this.enteredAt = now;
    return true;
  }

  /** The entry is over, and it has not begun there. */
  left(): void {
    this.enteredAt = undefined;
  }

  /** Its code has begun, or is about to. */
  begun(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.listener.begins();
  }

  get caller(): Caller {
    return this.delivery;
  }

  get isOver(): boolean {
    return this.over;
  }

  /** Whether its handler returned, and nothing was wrong. */
  get isDone(): boolean {
    return this.done;
  }

  /** Aborts when the attempt ends. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.isOver) this.controller.abort();
    return this.controller.signal;
  }

  /**
   * It is over from now on, also where its listener is told only once a stack's places are known. Promises do not reject.
   * @param told what its listener hears
   */
  end(outcome: Outcome | Promise<Outcome>, told = outcome): void {
    if (this.over) return;
    if (this.enteredAt !== undefined) this.begun();
    this.over = true;
    this.done = !(outcome instanceof Promise) && outcome.type === "ok";
    this.controller?.abort();
    this.giver.ended(this, told);
  }
}

/** JSON of the event as the handler gets it, without its objects: their own bytes are passed on as they came. */
export function eventHead({ delivery }: SandboxAttempt): Buffer {
  const { attempt, redelivered, causes, batch } = delivery;
  if (causes) {
    const { namespace, name } = delivery.object;
    const key = namespace === "" ? { name } : { namespace, name };
    return Buffer.from(JSON.stringify({ key, causes, attempt, redelivered }));
  }
  return Buffer.from(JSON.stringify(batch ? { batch } : eventFields(delivery)));
}
