import type { SandboxFixture } from "../sandbox/fixture.ts";

const count = 10;
/** Milliseconds between two events of a function. */
const restMs = 20;

const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? 0;

/**
 * Ten functions with steady work that run together with a hostile one, and their results. An interrupted event runs again, as in
 * the dispatcher.
 */
export class Innocents {
  readonly names = Array.from({ length: count }, (_, index) => `innocent-${index}`);
  /** Number of started events, and their outcomes. */
  begun = 0;
  readonly endings: Record<string, number> = {};
  /** Number of interrupted attempts that were repeated. */
  interruptions = 0;
  private readonly fixture: SandboxFixture;
  private readonly lags: number[] = [];
  private latencies: number[] = [];
  private stopped = false;
  private work: Promise<unknown> = Promise.resolve();

  private constructor(fixture: SandboxFixture) {
    this.fixture = fixture;
  }

  static async start(fixture: SandboxFixture, limits: { cpuMs: number; memoryMb: number }): Promise<Innocents> {
    const innocents = new Innocents(fixture);
    for (const name of innocents.names) {
      await fixture.load(name, "export default (event) => event.object.metadata.name.length;", limits);
    }
    innocents.work = Promise.all([...innocents.names.map((name) => innocents.live(name)), innocents.watchLag()]);
    return innocents;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.work;
  }

  forget(): void {
    this.latencies = [];
  }

  /** Resolves once so many events have ended since the last `forget`. */
  async seen(events: number): Promise<void> {
    while (this.latencies.length < events) await rest(5);
  }

  p99(): number {
    return quantile(this.latencies, 0.99);
  }

  /**
   * How long work kept this thread from its event loop, in CPU time, so that other work of the machine does not count.
   * Milliseconds.
   */
  lag(): { median: number; p99: number } {
    return { median: quantile(this.lags, 0.5), p99: quantile(this.lags, 0.99) };
  }

  private async live(name: string): Promise<void> {
    while (!this.stopped) {
      const startedAt = performance.now();
      this.begun++;
      let ending: string;
      do {
        ending = (await this.fixture.run(name, { timeoutMs: 30_000 })).type;
        if (ending === "interrupted") this.interruptions++;
      } while (ending === "interrupted");
      this.latencies.push(performance.now() - startedAt);
      this.endings[ending] = (this.endings[ending] ?? 0) + 1;
      await rest(restMs);
    }
  }

  private async watchLag(): Promise<void> {
    while (!this.stopped) {
      const { user, system } = process.threadCpuUsage();
      await rest(10);
      const now = process.threadCpuUsage();
      this.lags.push((now.user + now.system - user - system) / 1000);
    }
  }
}

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
