import { availableParallelism } from "node:os";
import type { Duplex } from "node:stream";
import { CompilerPacing } from "../../v8/compiler-pacing.ts";
import type { Events, Hello, Load, Recall, Replies, Unload } from "../messages.ts";
import { encodeFrame, type Frame, FrameReader, frameType, maxFrameDown } from "../wire.ts";
import { readEvents } from "./arrivals.ts";
import { closeIdleIsolates } from "./idle-isolates.ts";
import { IsolateFactory } from "./isolate.ts";
import { type ExecutorResources, LoadedFunction } from "./loaded-function.ts";
import { IsolateSlots } from "./slots.ts";
import { Watchdog } from "./watchdog.ts";

/** Milliseconds that other functions get to finish once an isolate can no longer be stopped. */
const drainMs = 2000;

/** Events per second from which optimised code pays off at once. */
const busyEvents = 3_000;
/** Bytes of reusable memory for incoming frames: several times a batch of Pods. */
const spareFrame = 1024 * 1024;
/** Frames that are flushed immediately, because the parent needs them to know which function to charge if this process dies. */
const urgentWords: ReadonlySet<number> = new Set([
  frameType.entering,
  frameType.ended,
  frameType.left,
  frameType.doomed,
]);

/** Kills this process at once. While isolates are alive, an orderly exit could wait for ever for one of their threads. */
export function killSelf(): never {
  process.kill(process.pid, "SIGKILL");
  throw new Error("unreachable");
}

/** The executor process: exchanges frames with the parent and passes them to the loaded functions. */
export class Executor {
  private readonly stream: Duplex;
  private readonly functions = new Map<number, LoadedFunction>();
  private readonly guestName: string;
  private readonly tierUp: Pick<CompilerPacing, "look">;
  private ground: ExecutorResources | undefined;
  private doomed = false;
  /** True while an isolate has just been created and timers are given a chance to run. */
  private isMaking = false;
  /** Events since the last heartbeat. */
  private received = 0;
  /** True while the frames of this turn of the event loop are collected for one write. */
  private isSaying = false;
  /** Frames that have arrived and are not processed, in order of arrival. */
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
   * Processes the frames that have arrived. Creating an isolate takes milliseconds, so this process' timers, which send
   * heartbeats, get to run after each one. A frame is not read before the preceding one is processed, because they share memory.
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
    // Compiles the bootstrap, so that its code cache exists when the first function is loaded.
    isolates.make({ memoryMb: 16, env: "{}", refused: "keys" }, () => {}).isolate.dispose();
    // One more than the number of cores, so that an isolate waiting for memory or a lock leaves no core idle.
    const slots = new IsolateSlots(availableParallelism() + 1);
    this.ground = { isolates, watchdog: new Watchdog(), slots, recycleEvents };
    setInterval(() => {
      this.send(frameType.beat, {});
      this.tierUp.look(this.received * 1000 >= busyEvents * heartbeatMs);
      this.received = 0;
      closeIdleIsolates(this.functions.values(), performance.now(), idleMs);
    }, heartbeatMs);
    this.send(frameType.beat, {});
  }

  private async load(options: Load, body: Buffer): Promise<void> {
    if (!this.ground) return;
    const { functionId: id } = options;
    const loaded = new LoadedFunction(this.ground, options, body.toString("utf8"), {
      entering: (realm, events) => this.send(frameType.entering, { functionId: id, realm, events }),
      drained: (realm, outbox, used) =>
        this.send(frameType.drained, { functionId: id, realm, used }, Buffer.from(outbox)),
      asking: (realm, call, no, operation, args) =>
        this.send(frameType.asking, { functionId: id, realm, call, no, operation }, Buffer.from(args)),
      ended: (realm, reason, charged, interrupted, stack, running) =>
        this.send(frameType.ended, { functionId: id, realm, reason, charged, interrupted, stack, running }),
      left: (realm) => this.send(frameType.left, { functionId: id, realm }),
      doomed: (reason) => this.doom(id, reason),
    });
    this.functions.set(id, loaded);
    const failure = await loaded.load();
    if (failure) this.functions.delete(id);
    this.send(frameType.loaded, failure ? { functionId: id, failure } : { functionId: id });
  }

  private events({ functionId: id, items }: Events, body: Buffer): void {
    this.received += items.length;
    this.functions.get(id)?.add(readEvents(items, body));
  }

  private replies({ functionId: id, items }: Replies, body: Buffer): void {
    const loaded = this.functions.get(id);
    let at = 0;
    for (const [realm, call, ok, length] of items) {
      loaded?.reply(realm, call, ok, body.toString("utf8", at, at + length));
      at += length;
    }
  }

  private unload({ functionId: id }: Unload): void {
    this.functions.get(id)?.unload();
    this.functions.delete(id);
  }

  private recall({ functionId: id }: Recall): void {
    this.send(frameType.returned, { functionId: id, events: this.functions.get(id)?.recall() ?? [] });
  }

  /**
   * Handles an isolate that cannot be stopped: the parent sends no more events, the other functions finish, and this process
   * ends.
   */
  private doom(functionId: number, reason: "poisoned" | "catastrophic"): void {
    this.send(frameType.doomed, { functionId, reason });
    if (this.doomed) return;
    this.doomed = true;
    const until = performance.now() + drainMs;
    setInterval(() => {
      const busy = [...this.functions.values()].some((other) => other.busy);
      if (!busy || performance.now() >= until) killSelf();
    }, 5);
  }

  /** Sends a frame. All frames of one turn of the event loop are sent in one write, which wakes the parent once. */
  private send(type: number, header: unknown, segment?: Buffer): void {
    if (!this.isSaying) {
      this.isSaying = true;
      this.stream.cork();
      process.nextTick(() => this.say());
    }
    for (const part of encodeFrame(type, header, segment ? [segment] : [])) this.stream.write(part);
    // The frame must reach the parent even if this process dies.
    if (urgentWords.has(type)) this.say();
  }

  private say(): void {
    if (!this.isSaying) return;
    this.isSaying = false;
    this.stream.uncork();
  }
}
