import type { Launch, Link, LinkListener } from "../../../runtime/sandbox/host/link.ts";
import type { Events, Load, Replies } from "../../../runtime/sandbox/messages.ts";
import { type Frame, FrameReader, frameType, maxFrameDown, maxFrameUp } from "../../../runtime/sandbox/wire.ts";

/** Records the traffic of one executor's connection: the events that were sent to it, and its messages about them. */
export class Connection {
  readonly number: number;
  frames = 0;
  bytes = 0;
  private readonly breaches: string[];
  /** Events by function and number, as `tenant/no`. */
  private readonly events = new Map<string, string>();
  private readonly functions = new Map<number, string>();
  private readonly sent = new Set<string>();
  private readonly ended = new Set<string>();
  private up: FrameReader | undefined = new FrameReader(maxFrameUp);
  private readonly down = new FrameReader(maxFrameDown);

  constructor(number: number, breaches: string[]) {
    this.number = number;
    this.breaches = breaches;
  }

  /** True if that function, and that event of it, was ever sent here. */
  wasSent(functionName: string, id: string): boolean {
    return [...this.functions.values()].includes(functionName) && this.sent.has(id);
  }

  /** True if the executor reported the end of an event that it had been sent. */
  hasEnded(id: string): boolean {
    return this.ended.has(id);
  }

  link(listener: LinkListener, launch: Launch): Link {
    const link = launch({
      opened: () => listener.opened(),
      data: (chunk) => {
        this.hear(Buffer.from(chunk));
        listener.data(chunk);
      },
      ended: (reason, detail) => listener.ended(reason, detail),
    });
    return {
      get pid() {
        return link.pid;
      },
      get peakMemory() {
        return link.peakMemory;
      },
      write: (bytes, taken) => {
        for (const frame of this.down.push(Buffer.from(bytes))) this.tell(frame);
        link.write(bytes, taken);
      },
      pause: () => link.pause(),
      resume: () => link.resume(),
      capMemory: (bytes) => link.capMemory(bytes),
      kill: () => link.kill(),
    };
  }

  private tell({ type, header, body }: Frame): void {
    const told: unknown = JSON.parse(header);
    if (type === frameType.load) this.functions.set((told as Load).tenant, (told as Load).name);
    else if (type === frameType.events) {
      const { tenant, items } = told as Events;
      let at = 0;
      for (const [no, , length, oldLength] of items) {
        const { id } = JSON.parse(body.toString("utf8", at, at + length)) as { id: string };
        at += length + Math.max(0, oldLength);
        this.events.set(`${tenant}/${no}`, id);
        this.sent.add(id);
      }
    } else if (type === frameType.replies) {
      let at = 0;
      for (const [, , ok, length] of (told as Replies).items) {
        const text = body.toString("utf8", at, at + length);
        at += length;
        if (ok === 0) continue;
        const { from } = JSON.parse(text) as { from: number };
        if (from !== this.number) this.breaches.push(`connection ${this.number} is sent a reply to connection ${from}`);
      }
    }
  }

  private hear(chunk: Buffer): void {
    this.bytes += chunk.length;
    try {
      for (const { type, header, body } of this.up?.push(chunk) ?? []) {
        this.frames++;
        if (type === frameType.drained) this.note(header, body);
      }
    } catch {
      // From here on, no further bytes are valid frames.
      this.up = undefined;
    }
  }

  private note(header: string, body: Buffer): void {
    try {
      const { tenant } = JSON.parse(header) as { tenant: number };
      const [done] = JSON.parse(body.toString("utf8", 0, body.indexOf("\n"))) as [(number | [number])[]];
      for (const entry of done) {
        const id = this.events.get(`${tenant}/${typeof entry === "number" ? entry : entry[0]}`);
        if (id !== undefined) this.ended.add(id);
      }
    } catch {
      // The parent must ignore it as well.
    }
  }
}
