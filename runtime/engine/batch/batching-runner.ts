import type { Clock, Timer } from "../../base/clock.ts";
import type { BatchSettings } from "../../manifest/function.ts";
import { isChange, ownApiVersion } from "../../manifest/function.ts";
import {
  type Delivery,
  type DeliveryListener,
  eventFields,
  type HandlerError,
  type Outcome,
  type Runner,
  run,
} from "../delivery/delivery.ts";

/** Takes the place of the object if several events are delivered as one. */
const batchKind = { apiVersion: ownApiVersion, kind: "Batch", namespace: "", uid: "" };

const comma = Buffer.from(",");
const [open, close] = [Buffer.from("["), Buffer.from("]")];

/** Combines several events, at least one, in one delivery. Its body is a JSON list of them, in their order. */
export function batchDelivery(deliveries: readonly Delivery[]): Delivery {
  const [first] = deliveries;
  if (!first) throw new TypeError("a batch has an event");
  const { function: name, trigger, type, resourceVersion, receivedAt, timeoutMs, state } = first;
  const texts = deliveries.flatMap((delivery, index) => [...(index === 0 ? [] : [comma]), ...textOf(delivery)]);
  return {
    function: name,
    trigger,
    id: first.id,
    type,
    object: { ...batchKind, name: `${deliveries.length} events` },
    resourceVersion,
    ...(receivedAt !== undefined && { receivedAt }),
    attempt: Math.max(...deliveries.map(({ attempt }) => attempt)),
    redelivered: deliveries.some(({ redelivered }) => redelivered),
    flags: {},
    body: Buffer.concat([open, ...texts, close]),
    batch: deliveries.map(({ id }) => id),
    members: deliveries,
    timeoutMs,
    state,
  };
}

/** Yields one event's JSON text in pieces. */
function* textOf(delivery: Delivery): Generator<Buffer> {
  const { type, body, oldBody } = delivery;
  yield Buffer.from(JSON.stringify(eventFields(delivery)).slice(0, -1));
  if (isChange(type)) {
    yield Buffer.from(',"object":');
    yield body;
  }
  if (oldBody) {
    yield Buffer.from(',"oldObject":');
    yield oldBody;
  }
  yield Buffer.from("}");
}

/** Limit for the bodies of one batch, in bytes: the isolate holds all of them at once, parsed. */
const mostBytes = 4 * 1024 * 1024;

interface BatchingParts {
  readonly runner: Runner;
  readonly clock: Clock;
  readonly batch: BatchSettings;
  /** The number of batches that run at once. */
  readonly concurrency: number;
}

/** An event that waits for its batch, or is in it. */
interface BatchedDelivery {
  readonly delivery: Delivery;
  readonly listener: DeliveryListener;
  /** The time of submission, in monotonic milliseconds. */
  readonly since: number;
  hasBegun: boolean;
}

/**
 * Runs the events of one function in batches, and reports the outcome of each. A batch that fails as a whole is halved, until a
 * single event has failed alone.
 */
export class BatchingRunner implements Runner {
  private readonly parts: BatchingParts;
  /** Events that failed before have a queue to themselves, so that one that fails again does not affect new ones. */
  private readonly queues: readonly [fresh: BatchedDelivery[], again: BatchedDelivery[]] = [[], []];
  private running = 0;
  private timer: Timer | undefined;

  constructor(parts: BatchingParts) {
    this.parts = parts;
  }

  give(delivery: Delivery, listener: DeliveryListener): void {
    const since = this.parts.clock.monotonic();
    const [fresh, again] = this.queues;
    (delivery.attempt > 1 ? again : fresh).push({ delivery, listener, since, hasBegun: false });
    this.proceed();
  }

  recall(functionName: string): void {
    this.timer?.cancel();
    for (const queue of this.queues) endAll(queue.splice(0), { type: "unbegun" });
    this.parts.runner.recall(functionName);
  }

  private proceed(): void {
    this.timer?.cancel();
    this.timer = undefined;
    const { concurrency, clock, batch } = this.parts;
    const now = clock.monotonic();
    while (this.running < concurrency) {
      const [fresh, again] = this.queues;
      const first = this.take(again, now);
      const items = first.length > 0 ? first : this.take(fresh, now);
      if (items.length === 0) break;
      this.running++;
      void this.attempt(items).then(() => {
        this.running--;
        this.proceed();
      });
    }
    const oldest = Math.min(...this.queues.flatMap(([first]) => first?.since ?? []));
    if (this.running >= concurrency || oldest === Number.POSITIVE_INFINITY) return;
    this.timer = clock.after(oldest + batch.maxWaitMs - now, () => this.proceed());
  }

  /** Returns the next batch of a queue, oldest first; empty while it is neither full nor has waited its time. */
  private take(queue: BatchedDelivery[], now: number): BatchedDelivery[] {
    const { maxSize, maxWaitMs } = this.parts.batch;
    let bytes = 0;
    let count = 0;
    for (const { delivery } of queue) {
      bytes += delivery.body.length + (delivery.oldBody?.length ?? 0);
      if (count === maxSize || (count > 0 && bytes > mostBytes)) break;
      count++;
    }
    const isFull = count === maxSize || bytes > mostBytes;
    const isDue = queue[0] !== undefined && now - queue[0].since >= maxWaitMs;
    return isFull || isDue ? queue.splice(0, count) : [];
  }

  /** Runs a batch until each of its events has ended. */
  private async attempt(items: readonly BatchedDelivery[]): Promise<void> {
    const isAgain = items.some(({ hasBegun }) => hasBegun);
    const deliveries = items.map(({ delivery, hasBegun }) =>
      hasBegun ? { ...delivery, redelivered: true } : delivery,
    );
    const batch = batchDelivery(deliveries);
    const outcome = await run(this.parts.runner, batch, () => {
      for (const item of items) if (!item.hasBegun) item.listener.begins();
      for (const item of items) item.hasBegun = true;
    });
    const { type } = outcome;
    const { staged } = batch;
    if (type === "ok") leaveState(items, staged, outcome.failed);
    else staged?.end(false);
    // The events have run once in this attempt, and that must be recorded.
    if (type === "unbegun" && isAgain) endAll(items, { type: "interrupted" });
    else if (type === "unbegun" || type === "interrupted") endAll(items, outcome);
    else if (type === "ok") endEach(items, outcome);
    else if (items.length === 1 || (type === "failed" && outcome.retryAfterMs !== undefined)) endAll(items, outcome);
    else {
      const half = Math.ceil(items.length / 2);
      await this.attempt(items.slice(0, half));
      await this.attempt(items.slice(half));
    }
  }
}

/** Passes the batch's view of the state to its first event that succeeded, whose end commits it. */
function leaveState(
  items: readonly BatchedDelivery[],
  staged: Delivery["staged"],
  failed: readonly number[] = [],
): void {
  const first = items.find((_, index) => !failed.includes(index));
  if (first) first.delivery.staged = staged;
  else staged?.end(false);
}

function endAll(items: readonly BatchedDelivery[], outcome: Outcome): void {
  for (const { listener } of items) listener.ended(outcome);
}

function endEach(items: readonly BatchedDelivery[], outcome: Extract<Outcome, { type: "ok" }>): void {
  const { failed, ...done } = outcome;
  const named = new Set(failed);
  const { durationMs } = outcome;
  for (const [index, { listener }] of items.entries()) {
    listener.ended(named.has(index) ? { type: "failed", error: namedError, durationMs } : done);
  }
}

const namedError: HandlerError = {
  name: "FailedInBatch",
  message: "the handler named the event in `failed`",
  stack: "",
};
