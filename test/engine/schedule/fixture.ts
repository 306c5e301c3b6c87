import type { Schedule } from "../../../runtime/manifest/function.ts";
import type { VirtualClock } from "../../virtual-clock.ts";
import { DispatchFixture, type DispatchOptions, manifest, quiet } from "../fixture.ts";

export const minute = 60_000;
export const hour = 60 * minute;

export const schedule = (over: Partial<Schedule> = {}): Schedule => ({
  name: "nightly",
  index: 0,
  times: { cron: "0 3 * * *", timeZone: "UTC" },
  jitterMs: 0,
  missed: "Once",
  ...over,
});

/** A function with one schedule. Runs are shown in short: `03:00`, with `missed`, `#attempt` and `!` if flagged. */
export class ScheduleFixture {
  private inner: DispatchFixture;

  private constructor(inner: DispatchFixture) {
    this.inner = inner;
  }

  static async open(of: Schedule = schedule(), options: DispatchOptions = {}): Promise<ScheduleFixture> {
    const inner = await DispatchFixture.open({ ...options, manifest: { ...manifest(), schedules: [of] } });
    // Its checkpoint is on disk from here on.
    await inner.clock.advance(1_000);
    return new ScheduleFixture(inner);
  }

  get dispatch(): DispatchFixture {
    return this.inner;
  }

  get clock(): VirtualClock {
    return this.inner.clock;
  }

  get runs() {
    return this.inner.runner.deliveries.filter(({ type }) => type === "Scheduled");
  }

  get told(): string[] {
    return this.runs.map(({ flags, attempt, redelivered }) => {
      const { scheduledFor = "", missed } = flags;
      const again = attempt > 1 ? ` #${attempt}` : "";
      return `${scheduledFor.slice(0, 16)}${missed ? " missed" : ""}${again}${redelivered ? " !" : ""}`;
    });
  }

  get next(): string | undefined {
    const next = this.inner.function.status().schedules[0]?.next;
    return next === undefined ? undefined : new Date(next).toISOString().slice(0, 16);
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await quiet(this.inner.runner);
  }

  /** Ends the process without draining, waits `downMs`, and starts another one. */
  async killed(downMs: number, of?: Schedule): Promise<void> {
    this.inner.kill();
    await this.clock.advance(downMs);
    await this.again(of);
  }

  /** Drains the process, waits `downMs`, and starts another one. */
  async stopped(downMs: number, of?: Schedule): Promise<void> {
    await this.inner.drain();
    await this.inner.store.close(true);
    await this.clock.advance(downMs);
    await this.again(of);
  }

  private async again(of: Schedule = schedule()): Promise<void> {
    this.inner = await this.inner.restart({ manifest: { ...manifest(), schedules: [of] } });
    await quiet(this.inner.runner);
  }
}
