import type { Clock } from "../../base/clock.ts";
import { abortable } from "../../kube/abortable.ts";
import { requiredName } from "../../kube/field-selector.ts";
import { type Resource, resourcePath } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { ObjectIdentity, type SourceSpec } from "../fanout/source-spec.ts";
import { type CurrentVersion, currentVersion } from "../stream/current-version.ts";
import type { ListSemaphore } from "./list-semaphore.ts";

/** How long a server without WatchList is asked by LIST, in milliseconds. */
const listInsteadMs = 3_600_000;

interface VersionQuestion {
  readonly resource: Resource;
  readonly place: VersionScope;
  readonly signal: AbortSignal;
  readonly answer: (answer: CurrentVersion) => void;
}

/** Scope of the question: no wider than the source's own rights. */
type VersionScope = Pick<SourceSpec, "namespace" | "fieldSelector">;

interface NewestVersionsParts {
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly listSlots: ListSemaphore;
}

/**
 * Asks for the newest resourceVersion of resources, read consistently. Each question costs the server as much as a list, so it
 * takes a list's slot. One answer serves all callers that had asked for the same resource by then, in any namespace, because
 * resourceVersions of one resource share one order.
 */
export class NewestVersions {
  private readonly parts: NewestVersionsParts;
  private readonly questions = new Map<string, VersionQuestion[]>();
  private listInsteadUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: NewestVersionsParts) {
    this.parts = parts;
  }

  /**
   * Never rejects; the result has no version if it could not be learnt. A caller whose signal aborts does not wait for the
   * questions of others.
   */
  ask(resource: Resource, place: VersionScope, signal: AbortSignal): Promise<CurrentVersion> {
    const { promise, resolve } = Promise.withResolvers<CurrentVersion>();
    const question = { resource, place, signal, answer: resolve };
    const key = `${resource.group}/${resource.plural}`;
    const waiting = this.questions.get(key);
    if (waiting) waiting.push(question);
    else {
      const questions = [question];
      this.questions.set(key, questions);
      void this.serve(key, questions);
    }
    return abortable(promise, signal).catch(() => ({}));
  }

  private async serve(key: string, questions: VersionQuestion[]): Promise<void> {
    while (questions.length > 0) {
      const [first] = questions;
      if (first) await this.answerFor(first, questions);
    }
    this.questions.delete(key);
  }

  /** Answers the first question, and with it all that were asked before it is sent. */
  private async answerFor(first: VersionQuestion, questions: VersionQuestion[]): Promise<void> {
    const { listSlots, clock, transport } = this.parts;
    const { resource, place, signal } = first;
    const release = await listSlots.take(signal, { yields: true }).catch(() => undefined);
    const asked = questions.splice(0);
    if (!release) {
      questions.push(...asked.slice(1));
      first.answer({});
      return;
    }
    const watchList = clock.monotonic() >= this.listInsteadUntil;
    const path = resourcePath(resource, place.namespace);
    const identity = new ObjectIdentity(resource);
    const name = requiredName(place.fieldSelector ?? "");
    const answer = await currentVersion({ transport, clock, path, identity, name, signal, watchList });
    release();
    if (answer.unsupported) this.listInsteadUntil = clock.monotonic() + listInsteadMs;
    // A refusal in this scope, or an abort by this caller, does not answer the other questions.
    const own = answer.version === undefined && (answer.refused || signal.aborted);
    first.answer(answer);
    if (own) questions.unshift(...asked.slice(1));
    else for (const question of asked.slice(1)) question.answer(answer);
  }
}
