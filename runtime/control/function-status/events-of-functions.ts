import type { Clock } from "../../base/clock.ts";
import { cut } from "../../base/wording.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { Logger } from "../../observe/log.ts";
import type { FunctionEvents } from "../access/audit-log.ts";
import type { FunctionObjects } from "./function-objects.ts";
import { apiVersion } from "./labelled-objects.ts";

/** Most Events that wait to be written. */
const mostWaiting = 64;
/** Time limit of one Event's requests, in milliseconds. */
const timeoutMs = 10_000;
/** Characters of a message that are sent: within the 1 KiB of bytes of most Events, and enough for people. */
const messageLimit = 1024;

interface EventsParts {
  readonly transport: KubeTransport;
  /** The runtime's namespace. */
  readonly namespace: string;
  readonly objects: FunctionObjects;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

/**
 * Writes Events about Function objects, one after the other. They are for people: beyond 64 that wait, and where the object is
 * missing or the API server refuses, an Event is left out.
 */
export class EventsOfFunctions implements FunctionEvents {
  private readonly parts: EventsParts;
  private last: Promise<void> = Promise.resolve();
  private waiting = 0;
  /** Whether the last Event failed: the first failure is logged. */
  private isFailing = false;

  constructor(parts: EventsParts) {
    this.parts = parts;
  }

  report(functionName: string, event: { readonly reason: string; readonly message: string }): void {
    if (this.waiting >= mostWaiting) return;
    this.waiting++;
    this.last = this.last
      .then(() => this.write(functionName, event))
      .then(
        () => {
          this.isFailing = false;
        },
        (error: unknown) => this.fail(functionName, error),
      )
      .finally(() => {
        this.waiting--;
      });
  }

  private fail(name: string, error: unknown): void {
    if (!this.isFailing) this.parts.log.warn({ function: name, error: String(error) }, "function event not written");
    this.isFailing = true;
  }

  private async write(
    name: string,
    { reason, message }: { readonly reason: string; readonly message: string },
  ): Promise<void> {
    const { transport, namespace, objects, clock } = this.parts;
    const limit = new AbortController();
    const timer = clock.after(timeoutMs, () => limit.abort());
    try {
      const [found] = await objects.list(limit.signal, name);
      if (!found) return;
      const at = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
      const body = {
        apiVersion: "v1",
        kind: "Event",
        metadata: { generateName: `${name.slice(0, 200)}-`, namespace },
        involvedObject: { apiVersion, kind: "Function", namespace, name, uid: found.uid },
        type: "Normal",
        reason,
        message: cut(message, messageLimit),
        source: { component: "watchfire" },
        firstTimestamp: at,
        lastTimestamp: at,
        count: 1,
      };
      const path = `/api/v1/namespaces/${namespace}/events`;
      await transport.json({ method: "POST", path, body: JSON.stringify(body), signal: limit.signal });
    } finally {
      timer.cancel();
    }
  }
}
