import type { Delivery, DeliveryListener, Outcome, Runner } from "../../runtime/engine/delivery/delivery.ts";

interface Waiting {
  readonly delivery: Delivery;
  readonly listener: DeliveryListener;
}

/** Starts deliveries as the sandbox does: each function's in order, at most its concurrency at a time. */
export class ModelExecutor implements Runner {
  private readonly concurrencyOf: (functionName: string) => number;
  private readonly handle: (delivery: Delivery) => Promise<Outcome>;
  private readonly functions = new Map<string, { running: number; readonly waiting: Waiting[] }>();

  constructor(concurrencyOf: (functionName: string) => number, handle: (delivery: Delivery) => Promise<Outcome>) {
    this.concurrencyOf = concurrencyOf;
    this.handle = handle;
  }

  give(delivery: Delivery, listener: DeliveryListener): void {
    this.of(delivery.function).waiting.push({ delivery, listener });
    this.proceed(delivery.function);
  }

  recall(functionName: string): void {
    for (const { listener } of this.of(functionName).waiting.splice(0)) listener.ended({ type: "unbegun" });
  }

  /** Loses the function's waiting deliveries, as with the executor's death, and returns them. */
  interrupt(functionName: string): readonly Delivery[] {
    const lost = this.of(functionName).waiting.splice(0);
    for (const { listener } of lost) listener.ended({ type: "interrupted" });
    return lost.map(({ delivery }) => delivery);
  }

  private of(functionName: string) {
    const found = this.functions.get(functionName) ?? { running: 0, waiting: [] };
    this.functions.set(functionName, found);
    return found;
  }

  private proceed(functionName: string): void {
    const mine = this.of(functionName);
    while (mine.running < this.concurrencyOf(functionName)) {
      const next = mine.waiting.shift();
      if (!next) return;
      mine.running++;
      this.begin(next);
    }
  }

  private begin({ delivery, listener }: Waiting): void {
    listener.begins();
    void this.handle(delivery).then((outcome) => {
      this.of(delivery.function).running--;
      listener.ended(outcome);
      this.proceed(delivery.function);
    });
  }
}
