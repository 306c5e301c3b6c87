import type { Clock } from "../../base/clock.ts";
import { YoungMap } from "../../v8/young-map.ts";
import { frameType } from "../wire.ts";
import { type Involvement, involvementsOf } from "./circuit-breaker.ts";
import { type DeathReason, ExecutorProcess, type ExecutorSettings } from "./executor-process.ts";
import type { DownFrame, UpFrame } from "./frames.ts";

/** Callbacks of one function loaded on an executor. */
export interface PlacedFunction {
  readonly function: string;
  /** Heap limit of each of its isolates, and how many may be active. */
  readonly memoryBytes: number;
  readonly isolates: number;
  /** Number of its attempts on the executor. */
  readonly size: number;
  frame(frame: UpFrame): void;
  /** Its executor accepts data again after `isFull`. */
  roomAgain(): void;
  /** Whether an answer to it is long overdue. */
  isOverdue(now: number): boolean;
  /** Since when its code is loading, in monotonic milliseconds; `undefined` if it is not. */
  readonly loadingSince: number | undefined;
  /** Called when the executor is about to end itself, and again when it has ended. `inside`: events whose code was running. */
  lost(involvement: Involvement, reason: DeathReason, inside: readonly number[]): void;
}

/** Callbacks of an executor's owner. */
interface KeeperListener {
  /** The executor died. `culprits` are the functions that may have caused it. */
  died(reason: DeathReason, detail: string, culprits: readonly string[]): void;
  /** Its last function has been removed. */
  deserted(): void;
}

/**
 * Memory of an executor itself under full load, and the minimum of any cap, in bytes. It takes 50 MiB when idle; 150 MiB of
 * garbage were seen at 6,000 events of 30 KB a second.
 */
const baseMemory = 200 * 2 ** 20;
const leastCap = 256 * 2 ** 20;

/** Milliseconds between two checks for overdue answers. */
const overduePollMs = 2000;

/** Maximum bytes of events that wait in an executor for other events of their functions to end. */
const mostWaiting = 8 * 2 ** 20;

/**
 * Milliseconds within which an executor must act, measured by this process. `doomedMs`: to end after it announced that; other
 * functions get 2 s of this. `overMs`: to stop an ended isolate's thread or announce its own end, which takes 1 s. `loadMs` and
 * `loadEachMs`: to load a module, which takes up to 2 s of CPU for each module, one after another. All include a margin for a
 * busy machine.
 */
const doomedMs = 5000;
const overMs = 15_000;
const loadMs = 60_000;
const loadEachMs = 3000;

/** Maximum number of isolates of one function that an honest executor can be inside at once, with a margin. */
const maxInside = 64;

interface Inside {
  readonly since: number;
  readonly events: readonly number[];
  /** It broke a limit and was reported, but its thread has not stopped since `since`. */
  readonly isOver: boolean;
}

/** An executor process with the functions loaded on it, and the knowledge of which code is running. */
export class ExecutorHandle {
  readonly number: number;
  private readonly clock: Clock;
  private readonly process: ExecutorProcess;
  private readonly keeper: KeeperListener;
  private readonly functions = new Map<number, PlacedFunction>();
  /**
   * Sums over the loaded functions in bytes: the largest heap limit, and the total of all isolates. Updated incrementally,
   * because there can be thousands.
   */
  private largest = 0;
  private limits = 0;
  private readonly inside = new YoungMap<number, Map<number, Inside>>();
  private readonly doomers = new Set<number>();
  private lastFunctionId = 0;
  /** The function in whose name a message was sent that no guest can send, or that could not be handled. */
  private blamed: number | undefined;
  /** Functions whose code has run here. */
  private readonly ran = new Set<number>();
  /** When its first frame arrived. */
  private spokeAt: number | undefined;
  /** When it was last sent events. */
  private lastSentAt: number;
  /** True while it runs no code: it has had no event for a while, and has been sent nothing since. */
  private isQuiet = false;
  /** Bytes of events that it has not begun. */
  private waitingBytes = 0;

  /** `number` identifies the executor in the records of its death. */
  constructor(settings: ExecutorSettings, number: number, keeper: KeeperListener) {
    this.number = number;
    this.clock = settings.clock;
    this.keeper = keeper;
    this.lastSentAt = this.clock.monotonic();
    this.process = new ExecutorProcess({
      ...settings,
      listener: {
        frame: (frame) => this.frame(frame),
        room: () => this.room(),
        died: (reason, detail) => this.buried(reason, detail),
      },
    });
    this.capMemory();
    this.expectAnswers();
  }

  /** Kills the executor if an answer is overdue. Heartbeats alone do not prove that it works. */
  private expectAnswers(): void {
    if (this.process.isDead) return;
    const overdue = this.overdue(this.clock.monotonic());
    if (overdue) this.process.kill("silent", `${overdue} is overdue`);
    else {
      if (!this.isQuiet && this.inside.size === 0 && this.idleMs >= overduePollMs) this.setQuiet(true);
      this.clock.after(overduePollMs, () => this.expectAnswers(), { unref: true });
    }
  }

  private setQuiet(isQuiet: boolean): void {
    this.isQuiet = isQuiet;
    this.process.mayRun(!isQuiet);
  }

  private overdue(now: number): string | undefined {
    const placed = [...this.functions.values()];
    if (placed.some((each) => each.isOverdue(now))) return "an event's end";
    const mostMs = loadMs + loadEachMs * placed.length;
    // Loading begins after the start, which has a separate time limit.
    const { spokeAt = now } = this;
    if (placed.some(({ loadingSince = now }) => now - Math.max(loadingSince, spokeAt) > mostMs))
      return "a module's load";
    const entries = [...this.inside].flatMap(([id, realms]) =>
      [...realms.values()].map(({ since, isOver }) => ({ since, isOver: isOver || !this.functions.has(id) })),
    );
    return entries.some(({ since, isOver }) => isOver && now - since > overMs) ? "the end of an isolate" : undefined;
  }

  private room(): void {
    for (const each of [...this.functions.values()]) each.roomAgain();
  }

  /** Number of functions on it. */
  get size(): number {
    return this.functions.size;
  }

  get isDead(): boolean {
    return this.process.isDead;
  }

  /** Milliseconds since it was last sent an event; 0 while it has an event or is loading a module. */
  get idleMs(): number {
    const isBusy = [...this.functions.values()].some(
      ({ size, loadingSince }) => size > 0 || loadingSince !== undefined,
    );
    return isBusy ? 0 : this.clock.monotonic() - this.lastSentAt;
  }

  /** Whether it can accept functions and events. */
  get isUsable(): boolean {
    return !this.process.isDead && this.doomers.size === 0;
  }

  /** Whether so much sent data is unread that no more should be sent. */
  get isFull(): boolean {
    return this.process.isFull;
  }

  /** Whether the maximum of waiting bytes is reached. */
  get isAhead(): boolean {
    return this.waitingBytes >= mostWaiting;
  }

  /** Adds to the bytes of waiting events; negative to subtract. */
  waits(bytes: number): void {
    const wasAhead = this.isAhead;
    this.waitingBytes += bytes;
    if (wasAhead && !this.isAhead) this.room();
  }

  /** Whether any function's code has run in it, which could be the cause of its death. */
  get hasRunCode(): boolean {
    return this.ran.size > 0;
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  get peakMemory(): number {
    return this.process.peakMemory;
  }

  /** Adds a function. Returns its number. */
  add(placed: PlacedFunction): number {
    const id = ++this.lastFunctionId;
    this.functions.set(id, placed);
    const { memoryBytes, isolates } = placed;
    this.limits += memoryBytes * isolates;
    this.largest = Math.max(this.largest, memoryBytes);
    this.capMemory();
    return id;
  }

  remove(id: number): void {
    const placed = this.functions.get(id);
    this.functions.delete(id);
    if (placed) {
      const { memoryBytes, isolates } = placed;
      this.limits -= memoryBytes * isolates;
      if (memoryBytes === this.largest)
        this.largest = Math.max(0, ...[...this.functions.values()].map((other) => other.memoryBytes));
    }
    this.send({ type: frameType.unload, header: { functionId: id } });
    this.capMemory();
    if (this.functions.size === 0) this.keeper.deserted();
  }

  /** Sends a frame. `taken` is called once the frame has left this process, or never will. */
  send(frame: DownFrame, taken?: () => void): void {
    if (frame.type === frameType.events) this.lastSentAt = this.clock.monotonic();
    if (this.isQuiet) this.setQuiet(false);
    this.process.send(frame, taken);
  }

  /** Kills it at once. `blamed` is the function at fault, if it is known. */
  kill(reason: DeathReason, detail: string, blamed?: number): void {
    if (!this.process.isDead) this.blamed = blamed;
    this.process.kill(reason, detail);
  }

  /** Sets the memory cap: four times the largest isolate's limit, in case one overshoots, plus the limits of all others. */
  private capMemory(): void {
    const { largest, limits } = this;
    this.process.capMemory(Math.max(leastCap, baseMemory + 4 * largest + limits - largest));
  }

  private frame(frame: UpFrame): void {
    this.spokeAt ??= this.clock.monotonic();
    if (!("functionId" in frame)) return;
    if (this.isQuiet) this.setQuiet(false);
    const { functionId: id } = frame;
    if (id > this.lastFunctionId || id === 0) {
      this.process.kill("breach", `it names function ${id}, which it does not have`);
      return;
    }
    // Also for a function that was unloaded meanwhile, because its executor ends all the same.
    if (frame.type === frameType.doomed) {
      this.doom(id);
      return;
    }
    const wrong = this.follow(id, frame);
    if (wrong) {
      this.process.kill("breach", wrong);
      return;
    }
    try {
      this.functions.get(id)?.frame(frame);
    } catch (error) {
      this.kill("breach", error instanceof Error ? error.message : "a frame cannot be handled", id);
    }
  }

  /**
   * Tracks which functions are inside, including unloaded ones, because their threads may still crash the executor. Returns a
   * description of a message that an honest executor would not send, else `undefined`.
   */
  private follow(id: number, frame: UpFrame): string | undefined {
    const realms = this.inside.get(id) ?? new Map<number, Inside>();
    switch (frame.type) {
      case frameType.entering:
        this.ran.add(id);
        if (realms.size >= maxInside) return `it is inside more than ${maxInside} isolates of one function`;
        realms.set(frame.realm, { since: this.clock.monotonic(), events: frame.events, isOver: false });
        break;
      case frameType.drained:
        if (!realms.delete(frame.realm)) return "it left an isolate that it had not entered";
        break;
      case frameType.ended: {
        const entry = realms.get(frame.realm);
        if (entry && frame.running)
          realms.set(frame.realm, { since: this.clock.monotonic(), events: [], isOver: true });
        else realms.delete(frame.realm);
        break;
      }
      case frameType.left:
        realms.delete(frame.realm);
        break;
      case frameType.loaded:
        realms.clear();
        break;
      default:
        return undefined;
    }
    if (realms.size > 0) this.inside.set(id, realms);
    else this.inside.delete(id);
    return undefined;
  }

  /**
   * Handles an executor's report that a function cannot be stopped. All functions leave it; running events may finish until it
   * ends itself.
   */
  private doom(id: number): void {
    const isFirst = this.doomers.size === 0;
    this.doomers.add(id);
    this.reportLost(id, this.functions.size === 1 ? "proven" : "culprit", "stuck");
    // The others have already left, and finish.
    if (!isFirst) return;
    const end = () => this.process.kill("stuck", "it did not end itself");
    this.clock.after(doomedMs, end, { unref: true });
    for (const other of [...this.functions.keys()]) if (other !== id) this.reportLost(other, "bystander", "stuck");
  }

  private buried(how: DeathReason, detail: string): void {
    const wasDoomed = this.doomers.size > 0;
    const reason = how === "exited" && wasDoomed ? "stuck" : how;
    const now = this.clock.monotonic();
    const inside = [...this.inside].flatMap(([functionId, realms]) =>
      [...realms.values()].map(({ since, isOver }) => ({ functionId, ms: now - since, isOver })),
    );
    const { ran, blamed } = this;
    const involvements = involvementsOf({
      reason,
      functionIds: [...this.functions.keys()],
      ran,
      inside,
      blamed,
      wasDoomed,
    });
    for (const id of [...this.functions.keys()]) this.reportLost(id, involvements.get(id) ?? "bystander", reason);
    const culprits = [...involvements].filter(([, involvement]) => named.has(involvement)).map(([id]) => id);
    const known = culprits.length > 0 ? culprits : [...this.doomers];
    const names = known.flatMap((id) => this.functions.get(id)?.function ?? []);
    this.functions.clear();
    this.keeper.died(reason, detail, names);
  }

  private reportLost(id: number, involvement: Involvement, reason: DeathReason): void {
    const inside = [...(this.inside.get(id)?.values() ?? [])].flatMap((entry) => entry.events);
    this.functions.get(id)?.lost(involvement, reason, inside);
  }
}

/** Parts in a death with which a function is named to the keeper. */
const named: ReadonlySet<Involvement> = new Set(["proven", "culprit", "suspect"]);
