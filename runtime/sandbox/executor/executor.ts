import { availableParallelism } from "node:os";
import type { Duplex } from "node:stream";
import { CompilerPacing } from "../../v8/compiler-pacing.ts";
import type { Events, Hello, Load, Recall, Replies, Unload } from "../messages.ts";
import { encodeFrame, type Frame, FrameReader, frameType, maxFrameDown } from "../wire.ts";
import { readEvents } from "./arrivals.ts";
import { IsolateFactory } from "./isolate.ts";
import { type Ground, LoadedFunction } from "./loaded-function.ts";
import { IsolateSlots } from "./slots.ts";
import { letGoOfIdle } from "./warmth.ts";
import { Watchdog } from "./watchdog.ts";

/** Milliseconds that neighbours get to finish once an isolate can no longer be stopped. */
const drainMs = 2000;

/** From so many events a second on, better code pays at once. */
const busyEvents = 3_000;
/** Bytes of frames that are put together in the same memory: a batch of Pods, and several times as much. */
const spareFrame = 1024 * 1024;
/** Who is inside, and whom a death would be charged to. */
const urgentWords: ReadonlySet<number> = new Set([
  frameType.entering,
  frameType.ended,
  frameType.left,
  frameType.doomed,
]);

/** Ends this process at once: with isolates alive an orderly exit could wait for ever on one of their threads. */
export function killSelf(): never {
  process.kill(process.pid, "SIGKILL");
  throw new Error("unreachable");
}

/** The child's half: carries frames between the parent and the tenants. */
export class Executor {
  private readonly stream: Duplex;
  private readonly tenants = new Map<number, LoadedFunction>();
  private readonly guestName: string;
  private readonly tierUp: Pick<CompilerPacing, "look">;
  private ground: Ground | undefined;
  private doomed = false;
  /** An isolate was made, and timers have their turn. */
  private isMaking = false;
  /** Events since the last beat. */
  private received = 0;
  /** Frames of this turn wait for each other. */
  private isSaying = false;
  /** What came and is not read to its end, in its order. */
  private readonly arrived: Iterator<Frame>[] = [];

  constructor(stream: Duplex, guestName: string, tierUp: Pick<CompilerPacing, "look"> = new CompilerPacing()) {
    this.stream = stream;
    this.guestName = guestName;
    this.tierUp = tierUp;
  }

  start(versions: { readonly node: string; readonly isolatedVm: string }): void {
    const reader = new FrameReader(maxFrameDown, spareFrame);
    this.stream.on("data", (chunk: Buffer) => {
      this.arrived.push(reader.push(chunk));
      this.proceed();
    });
    this.stream.on("close", killSelf);
    this.stream.on("error", killSelf);
    this.send(frameType.ready, versions);
  }

  /**
   * An isolate takes milliseconds to make: after each of them come this process' timers, which say that it lives. No frame
   * is read before the one ahead of it is done with, since they share their memory.
   */
  private proceed(): void {
    if (this.isMaking) return;
    for (let frame = this.next(); frame; frame = this.next()) {
      this.receive(frame);
      if (frame.type !== frameType.load) continue;
      this.isMaking = true;
      this.stream.pause();
      setImmediate(() => {
        this.isMaking = false;
        this.stream.resume();
        this.proceed();
      });
      return;
    }
  }

  private next(): Frame | undefined {
    for (let [first] = this.arrived; first; [first] = this.arrived) {
      const { value, done } = first.next();
      if (!done) return value;
      this.arrived.shift();
    }
    return undefined;
  }

  private receive({ type, header, body }: Frame): void {
    const head = JSON.parse(header) as unknown;
    if (type === frameType.hello) this.hello(head as Hello, body);
    else if (type === frameType.load) this.load(head as Load, body);
    else if (type === frameType.events) this.events(head as Events, body);
    else if (type === frameType.replies) this.replies(head as Replies, body);
    else if (type === frameType.unload) this.unload(head as Unload);
    else if (type === frameType.recall) this.recall(head as Recall);
  }

  private hello({ heartbeatMs, idleMs, recycleEvents }: Hello, body: Buffer): void {
    const isolates = new IsolateFactory(body.toString("utf8"), this.guestName);
    // Compiles the bootstrap, so that a spare is warm when it is needed.
    isolates.make({ memoryMb: 16, env: "{}", refused: "keys" }, () => {}).isolate.dispose();
    // One more than the cores: an isolate that waits for memory or a lock does not leave a core idle.
    const slots = new IsolateSlots(availableParallelism() + 1);
    this.ground = { isolates, watchdog: new Watchdog(), slots, recycleEvents };
    setInterval(() => {
      this.send(frameType.beat, {});
      this.tierUp.look(this.received * 1000 >= busyEvents * heartbeatMs);
      this.received = 0;
      letGoOfIdle(this.tenants.values(), performance.now(), idleMs);
    }, heartbeatMs);
    this.send(frameType.beat, {});
  }

  private async load(options: Load, body: Buffer): Promise<void> {
    if (!this.ground) return;
    const { tenant: id } = options;
    const tenant = new LoadedFunction(this.ground, options, body.toString("utf8"), {
      entering: (realm, events) => this.send(frameType.entering, { tenant: id, realm, events }),
      drained: (realm, outbox) => this.send(frameType.drained, { tenant: id, realm }, Buffer.from(outbox)),
      asking: (realm, call, no, operation, args) =>
        this.send(frameType.asking, { tenant: id, realm, call, no, operation }, Buffer.from(args)),
      ended: (realm, reason, charged, interrupted, stack, running) =>
        this.send(frameType.ended, { tenant: id, realm, reason, charged, interrupted, stack, running }),
      left: (realm) => this.send(frameType.left, { tenant: id, realm }),
      doomed: (reason) => this.doom(id, reason),
    });
    this.tenants.set(id, tenant);
    const failure = await tenant.load();
    if (failure) this.tenants.delete(id);
    this.send(frameType.loaded, failure ? { tenant: id, failure } : { tenant: id });
  }

  private events({ tenant: id, items }: Events, body: Buffer): void {
    this.received += items.length;
    this.tenants.get(id)?.add(readEvents(items, body));
  }

  private replies({ tenant: id, items }: Replies, body: Buffer): void {
    const tenant = this.tenants.get(id);
    let at = 0;
    for (const [realm, call, ok, length] of items) {
      tenant?.reply(realm, call, ok, body.toString("utf8", at, at + length));
      at += length;
    }
  }

  private unload({ tenant: id }: Unload): void {
    this.tenants.get(id)?.unload();
    this.tenants.delete(id);
  }

  private recall({ tenant: id }: Recall): void {
    this.send(frameType.returned, { tenant: id, events: this.tenants.get(id)?.recall() ?? [] });
  }

  /** An isolate cannot be stopped: the parent sends no more, the neighbours finish, and this process ends. */
  private doom(tenant: number, reason: "poisoned" | "catastrophic"): void {
    this.send(frameType.doomed, { tenant, reason });
    if (this.doomed) return;
    this.doomed = true;
    const until = performance.now() + drainMs;
    setInterval(() => {
      const busy = [...this.tenants.values()].some((other) => other.busy);
      if (!busy || performance.now() >= until) killSelf();
    }, 5);
  }

  /** What is said in one turn leaves in one write, which wakes the parent once. */
  private send(type: number, header: unknown, segment?: Buffer): void {
    if (!this.isSaying) {
      this.isSaying = true;
      this.stream.cork();
      process.nextTick(() => this.say());
    }
    for (const part of encodeFrame(type, header, segment ? [segment] : [])) this.stream.write(part);
    // The word is to survive this process.
    if (urgentWords.has(type)) this.say();
  }

  private say(): void {
    if (!this.isSaying) return;
    this.isSaying = false;
    this.stream.uncork();
  }
}
