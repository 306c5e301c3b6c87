import type { Delivery, Outcome, Runner } from "../../runtime/dispatch/delivery/delivery.ts";

interface Waiting {
  readonly delivery: Delivery;
  readonly begin: () => void;
  readonly end: (outcome: Outcome) => void;
}

/** Begins what it is given as the sandbox does: each function's in order, never more at once than its concurrency. */
export class ModelExecutor implements Runner {
  private readonly concurrencyOf: (functionName: string) => number;
  private readonly handle: (delivery: Delivery) => Promise<Outcome>;
  private readonly functions = new Map<string, { running: number; readonly waiting: Waiting[] }>();

  constructor(concurrencyOf: (functionName: string) => number, handle: (delivery: Delivery) => Promise<Outcome>) {
    this.concurrencyOf = concurrencyOf;
    this.handle = handle;
  }

  run(delivery: Delivery, begins: () => void = () => {}): Promise<Outcome> {
    return new Promise((resolve) => {
      const mine = this.of(delivery.function);
      const begin = () => {
        begins();
        void this.handle(delivery).then((outcome) => {
          mine.running--;
          resolve(outcome);
          this.proceed(delivery.function);
        });
      };
      mine.waiting.push({ delivery, begin, end: resolve });
      this.proceed(delivery.function);
    });
  }

  recall(functionName: string): void {
    for (const { end } of this.of(functionName).waiting.splice(0)) end({ type: "unbegun" });
  }

  /** What of a function's waits is lost with the executor. Gives it. */
  interrupt(functionName: string): readonly Delivery[] {
    const lost = this.of(functionName).waiting.splice(0);
    for (const { end } of lost) end({ type: "interrupted" });
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
      next.begin();
    }
  }
}
