import { type Fact, namespaces, readDeliveries, readFacts, revision } from "../audit/ledger.ts";
import { judge, type Verdict } from "../audit/verdict.ts";
import { Writer } from "../audit/writer-process.ts";
import { until } from "../tools/until.ts";
import { admin, ensureNamespace, kubeconfig, removeNamespace } from "./release.ts";

/** If nothing new arrives for this long, late deliveries have arrived. Milliseconds. */
const quietMs = 3_000;
/**
 * If nothing is delivered for this long, the remaining changes count as missed; a takeover is much shorter. Milliseconds.
 */
const patienceMs = 45_000;

/** A writer's load, and an auditor that compares the cluster's history with the records of the function `recorder`. */
export class Ledger {
  private readonly writer: Writer;
  private readonly facts: Fact[] = [];
  private read: number;

  private constructor(read: number) {
    this.read = read;
    this.writer = new Writer(kubeconfig, 200, 20261121);
  }

  static async open(): Promise<Ledger> {
    for (const name of Object.values(namespaces)) {
      await removeNamespace(name);
      await ensureNamespace(name);
    }
    return new Ledger(await revision(admin));
  }

  /** Allows the writer so many further operations; it does about 500 a second. */
  write(operations: number): void {
    this.writer.allow(operations);
  }

  /** Resolves when at most so many of them are left. */
  left(operations: number): Promise<void> {
    return this.writer.left(operations);
  }

  /** The verdict on everything so far, once all of it is delivered or deliveries stop. */
  async verdict(): Promise<Verdict> {
    await this.left(0);
    const now = await revision(admin);
    this.facts.push(...(await readFacts(admin, this.read)));
    this.read = now;
    let count = -1;
    let changedAt = performance.now();
    return until("the runtime catches up", 180_000, async () => {
      const deliveries = await readDeliveries(admin);
      if (deliveries.length !== count) {
        count = deliveries.length;
        changedAt = performance.now();
        return undefined;
      }
      const quietFor = performance.now() - changedAt;
      if (quietFor < quietMs) return undefined;
      const verdict = judge(this.facts, deliveries);
      return (verdict.missed.length === 0 || quietFor > patienceMs) && verdict;
    });
  }

  /**
   * Lets the writer do so many operations, `disturb` in their middle, and judges all that has happened so far.
   *
   * @throws Error where the verdict finds a fault
   */
  async amidWriting(operations: number, what: string, disturb: () => Promise<unknown>): Promise<Verdict> {
    this.write(operations);
    await this.left(operations / 2);
    await disturb();
    return this.judged(what);
  }

  /** The same with so many operations a second until `disturb` is complete. */
  async whileWriting(perSecond: number, what: string, disturb: () => Promise<unknown>): Promise<Verdict> {
    const writing = setInterval(() => this.write(perSecond / 4), 250);
    try {
      await disturb();
    } finally {
      clearInterval(writing);
    }
    return this.judged(what);
  }

  private async judged(what: string): Promise<Verdict> {
    const verdict = await this.verdict();
    say(`${what}: ${describeVerdict(verdict)}`);
    const faults = faultsOf(verdict);
    if (faults.length > 0) throw new Error(`${what}: ${faults.join("; ")}`);
    return verdict;
  }

  /** The number of recorded deliveries. */
  async deliveries(): Promise<number> {
    const page = await admin.get(`/api/v1/namespaces/${namespaces.records}/configmaps`, { limit: 1 });
    return page.items.length + Number(page.metadata.remainingItemCount ?? 0);
  }

  close(): void {
    this.writer.stop();
  }
}

/**
 * The violations of the delivery promise, with examples: missed events, unflagged duplicates, wrong order within an object,
 * invented events.
 */
export function faultsOf({ missed, unflagged, disordered, invented }: Verdict): string[] {
  return Object.entries({ missed, unflagged, disordered, invented }).flatMap(([kind, list]) =>
    list.slice(0, 5).map((each) => `${kind}: ${each}`),
  );
}

export function describeVerdict({
  facts,
  deliveries,
  flagged,
  missed,
  unflagged,
  disordered,
  invented,
}: Verdict): string {
  const faults = `${missed.length} missed, ${unflagged.length} not flagged, ${disordered.length} out of order, ${invented.length} invented`;
  return `${facts} changes, ${deliveries} deliveries, ${flagged} flagged: ${faults}`;
}

/** Prints a measurement to the run's output. */
export const say = (line: string): void => void process.stdout.write(`    ${line}\n`);
