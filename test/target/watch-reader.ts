import { Agent, request } from "undici";
import { type Access, type Body, definedOf, type Query } from "./client.ts";

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: Body;
}

/** Query of a watch without `watch=true`, which the reader adds. */
export type WatchQuery = Query;

/** How long a test waits for an event that must arrive, in milliseconds. */
const patienceMs = 20_000;

/** One open watch on a separate connection. Events are read in the order of their arrival. */
export class WatchReader {
  readonly status: number;
  /** The body of an answer other than 200. */
  readonly refusal: Body | undefined;
  private readonly queue: WatchEvent[] = [];
  private wake: () => void = () => {};
  private state: "open" | "clean" | "broken" = "open";
  private readonly close: () => void;

  private constructor(status: number, refusal: Body | undefined, close: () => void) {
    this.status = status;
    this.refusal = refusal;
    this.close = close;
    if (refusal) this.state = "clean";
  }

  static async open(
    access: Access,
    path: string,
    query: WatchQuery,
    headers: Record<string, string>,
  ): Promise<WatchReader> {
    const { url, ca, cert, key } = access;
    const agent = new Agent({ connect: { ca, ...(cert && key ? { cert, key } : {}) }, allowH2: false, bodyTimeout: 0 });
    const answer = await request(`${url}${path}`, {
      dispatcher: agent,
      query: definedOf({ watch: true, ...query }),
      headers: { accept: "application/json", ...headers },
    });
    const close = () => void agent.destroy().catch(() => {});
    if (answer.statusCode !== 200) {
      const refusal = (await answer.body.json()) as Body;
      return new WatchReader(answer.statusCode, refusal, close);
    }
    const reader = new WatchReader(200, undefined, close);
    void reader.pump(answer.body);
    return reader;
  }

  /** The next event. Fails if the watch ends or stays silent. */
  async next(): Promise<WatchEvent> {
    const event = await this.take();
    if (!event) throw new Error(`the watch ended (${this.state}) where an event was due`);
    return event;
  }

  /** The next `count` events. */
  async several(count: number): Promise<WatchEvent[]> {
    const events: WatchEvent[] = [];
    while (events.length < count) events.push(await this.next());
    return events;
  }

  /** Events up to and including the first that `isLast` accepts. */
  async until(isLast: (event: WatchEvent) => boolean): Promise<WatchEvent[]> {
    const events: WatchEvent[] = [];
    for (;;) {
      const event = await this.next();
      events.push(event);
      if (isLast(event)) return events;
    }
  }

  /** All events up to the server's end of the stream. Fails if it does not end cleanly. */
  async untilEnd(): Promise<WatchEvent[]> {
    const events: WatchEvent[] = [];
    for (let event = await this.take(); event; event = await this.take()) events.push(event);
    if (this.state !== "clean") throw new Error("the watch was cut instead of ended");
    return events;
  }

  /** Resolves when the stream is over, with the way it ended. */
  async ended(): Promise<"clean" | "broken"> {
    while (await this.take());
    return this.state as "clean" | "broken";
  }

  [Symbol.dispose](): void {
    this.close();
  }

  private async take(): Promise<WatchEvent | undefined> {
    const deadline = AbortSignal.timeout(patienceMs);
    while (this.queue.length === 0) {
      if (this.state !== "open") return undefined;
      if (deadline.aborted) throw new Error(`the watch stayed silent for ${patienceMs} ms where an event was due`);
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        deadline.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    return this.queue.shift();
  }

  private async pump(body: AsyncIterable<Buffer>): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    try {
      for await (const chunk of body) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) this.queue.push(JSON.parse(line) as WatchEvent);
        this.wake();
      }
      this.state = rest === "" ? "clean" : "broken";
    } catch {
      this.state = "broken";
    }
    this.wake();
  }
}
