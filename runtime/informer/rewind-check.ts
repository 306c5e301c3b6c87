import type { Clock, Timer } from "../base/clock.ts";
import { isNewer, type ResourceVersion } from "../base/resource-version.ts";
import type { Resource } from "../kube/resource.ts";
import type { SourceSpec } from "./fanout/source-spec.ts";
import type { NewestVersions } from "./list/newest-versions.ts";
import type { CurrentVersion } from "./stream/current-version.ts";

type ResourceKind = Pick<SourceSpec, "apiVersion" | "kind">;

/**
 * Counts, per kind, how often the cluster's state was found to have gone back. Each source finds it out by itself, at its own
 * time. Until then its data may be of the state that was undone, though another source of the kind is past that.
 */
export class Rewinds {
  private readonly counts = new Map<string, number>();

  /** Records that a source of the kind has found a rewind. */
  note(kind: ResourceKind): void {
    this.counts.set(keyOf(kind), this.of(kind) + 1);
  }

  /** Returns how often all sources of the kind together found a rewind. */
  of(kind: ResourceKind): number {
    return this.counts.get(keyOf(kind)) ?? 0;
  }
}

/** All versions of a group share one sequence of resourceVersions. */
function keyOf({ apiVersion, kind }: ResourceKind): string {
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  return `${group}/${kind}`;
}

/**
 * Delays before the two further questions after one that the server could not answer, in milliseconds, unless the server asks for
 * longer: within 30 s. After that, the question is asked again with the next connection.
 */
const askAgainMs = [5000, 10_000];

interface RewindParts {
  readonly spec: SourceSpec;
  readonly clock: Clock;
  readonly newestVersions: NewestVersions;
  /** Aborts when the source stops. */
  readonly signal: AbortSignal;
  /** Returns the newest resourceVersion known to any subscriber of the source. */
  newest(): ResourceVersion | undefined;
  /** Returns the number of complete lists so far. */
  lists(): number;
  /** Returns true while a full relist after a rewind is under way. */
  relisting(): boolean;
  /** Called when resourceVersions went back. */
  rewound(): void;
  /** Called with the server's newest resourceVersion if there was no rewind. */
  answered(resourceVersion: ResourceVersion): void;
}

/**
 * Detects that the server's resourceVersions went back, as they do when a cluster is restored from a backup. A watch from a
 * position in the future is accepted and stays silent. The server is therefore asked for its newest resourceVersion while the
 * stream runs.
 */
export class RewindCheck {
  /**
   * True if the next stream that resumes must be checked: it is the first, the connection broke, or a subscriber joined with a
   * newer position.
   */
  due = true;
  private readonly parts: RewindParts;
  private running: Promise<void> | undefined;
  private again: Timer | undefined;
  private unanswered = 0;

  constructor(parts: RewindParts) {
    this.parts = parts;
  }

  /** Asks the server. */
  ask(resource: Resource): void {
    this.again?.cancel();
    // The answer to a pending question may be older than the reason to ask again.
    if (this.running) this.due = true;
    else this.running = this.run(resource);
  }

  /** Stops asking. Resolves when no connection and no timer is left. The source's signal must have aborted before. */
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
    } while (answer.version !== undefined && this.due && !this.parts.relisting() && !signal.aborted);
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
    // Both are read now: what is learnt later is newer than the question.
    const [newest, lists] = [this.parts.newest(), this.parts.lists()];
    const answer = await newestVersions.ask(resource, spec, signal);
    if (answer.version !== undefined && !signal.aborted) this.judge(answer.version, newest, lists);
    return answer;
  }

  private judge(current: ResourceVersion, newest: ResourceVersion | undefined, lists: number): void {
    if (newest === undefined || !isNewer(newest, current)) this.parts.answered(current);
    // A list completed meanwhile is better evidence than this answer.
    else if (this.parts.lists() === lists && !this.parts.relisting()) this.parts.rewound();
    // A subscriber that has joined since is not part of that list.
    else this.due = true;
  }
}
