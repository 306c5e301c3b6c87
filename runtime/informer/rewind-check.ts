import type { Clock, Timer } from "../base/clock.ts";
import { isNewer, type ResourceVersion } from "../base/resource-version.ts";
import type { Resource } from "../kube/resource.ts";
import type { SourceSpec } from "./fanout/source-spec.ts";
import type { NewestVersions } from "./list/newest-versions.ts";
import type { CurrentVersion } from "./stream/current-version.ts";

/** Where the server could not say it is asked twice more, within 30 s unless it wants longer; then when the next connection is made. */
const askAgainMs = [5000, 10_000];

interface RewindParts {
  readonly spec: SourceSpec;
  readonly clock: Clock;
  readonly newestVersions: NewestVersions;
  /** Aborts when the source stops. */
  readonly signal: AbortSignal;
  /** The newest resourceVersion that anybody at the source knows of. */
  newest(): ResourceVersion | undefined;
  /** Complete lists so far. */
  lists(): number;
  /** It is known that they went back, and all is being listed anew. */
  relisting(): boolean;
  /** resourceVersions went back. */
  rewound(): void;
  /** The server's newest resourceVersion, where none went back. */
  answered(resourceVersion: ResourceVersion): void;
}

/**
 * Finds out whether the server's resourceVersions went back, as they do when a cluster is restored from a backup. A
 * watch from a position in the future is accepted and stays silent. So the server is asked for its newest
 * resourceVersion beside the stream that runs.
 */
export class RewindCheck {
  /** Whether a stream that resumes is to be checked: it is the first, the connection broke, or somebody came from ahead. */
  due = true;
  private readonly parts: RewindParts;
  private running: Promise<void> | undefined;
  private again: Timer | undefined;
  private unanswered = 0;

  constructor(parts: RewindParts) {
    this.parts = parts;
  }

  /** Asks. */
  ask(resource: Resource): void {
    this.again?.cancel();
    // The answer to a question that is out may be older than the reason to ask.
    if (this.running) this.due = true;
    else this.running = this.run(resource);
  }

  /** Asks no more: resolves when no connection and no timer is left. The source's signal aborts before. */
  async stop(): Promise<void> {
    this.again?.cancel();
    await this.running;
  }

  /** Never rejects. */
  private async run(resource: Resource): Promise<void> {
    const { signal } = this.parts;
    let answer: CurrentVersion = {};
    do {
      this.due = false;
      answer = await this.answer(resource);
    } while (answer.version !== undefined && this.due && !signal.aborted);
    this.running = undefined;
    if (answer.version !== undefined) this.unanswered = 0;
    else this.later(resource, answer.retryAfterMs ?? 0);
  }

  private later(resource: Resource, atLeastMs: number): void {
    const { clock, signal } = this.parts;
    this.due = true;
    const delayMs = askAgainMs[this.unanswered++];
    if (delayMs === undefined) this.unanswered = 0;
    else if (!signal.aborted) {
      this.again = clock.after(Math.max(delayMs, atLeastMs), () => this.ask(resource), { unref: true });
    }
  }

  private async answer(resource: Resource): Promise<CurrentVersion> {
    const { spec, newestVersions, signal } = this.parts;
    // Both as they are now: what is learnt meanwhile is newer than the question.
    const [newest, lists] = [this.parts.newest(), this.parts.lists()];
    const answer = await newestVersions.ask(resource, spec, signal);
    if (answer.version !== undefined && !signal.aborted) this.judge(answer.version, newest, lists);
    return answer;
  }

  private judge(current: ResourceVersion, newest: ResourceVersion | undefined, lists: number): void {
    if (newest === undefined || !isNewer(newest, current)) this.parts.answered(current);
    // A list that was completed meanwhile knows better than this answer.
    else if (this.parts.lists() === lists && !this.parts.relisting()) this.parts.rewound();
  }
}
