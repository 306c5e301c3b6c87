import type { Clock, Timer } from "../clock.ts";
import { type Resource, resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { isNewer, type ResourceVersion } from "../resource-version.ts";
import { type Answer, currentVersion } from "./current-version.ts";
import type { Intake } from "./intake.ts";
import { ObjectIdentity, type SourceSpec } from "./source-spec.ts";

/** Where the server could not say it is asked twice more, within 30 s unless it wants longer; then when the next connection is made. */
const askAgainMs = [5000, 10_000];

export interface RewindParts {
  readonly spec: SourceSpec;
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly intake: Intake;
  /** Told what the server's newest resourceVersion is, where none went back. */
  readonly answered: (resourceVersion: ResourceVersion) => void;
  /** Aborts when the source stops. */
  readonly signal: AbortSignal;
}

/**
 * Finds out whether the server's resourceVersions went back, as they do when a cluster is restored from a backup. A
 * watch from a position in the future is accepted and stays silent, so the server is asked for its newest
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

  /** Asks. A rewind ends the open connection and makes the next one a list. */
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
    let answer: Answer = {};
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

  private async answer(resource: Resource): Promise<Answer> {
    const { spec, transport, clock, signal } = this.parts;
    const { lists, newest } = this.parts.intake;
    const path = resourcePath(resource, spec.namespace);
    const answer = await currentVersion({ transport, clock, path, identity: new ObjectIdentity(resource), signal });
    if (answer.version !== undefined) this.judge(answer.version, newest, lists);
    return answer;
  }

  /** `newest`, and how many lists had been read, when the question was asked. */
  private judge(current: ResourceVersion, newest: ResourceVersion | undefined, lists: number): void {
    const { intake } = this.parts;
    if (newest === undefined || !isNewer(newest, current)) {
      this.parts.answered(current);
      return;
    }
    // A list that was completed meanwhile, or is being read for this reason, knows better than this answer.
    if (intake.lists !== lists || intake.relist === "rv-rewind") return;
    intake.relist = "rv-rewind";
    intake.session?.end({ type: "closed", by: "rewind" });
  }
}
