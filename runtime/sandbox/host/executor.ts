import type { Clock } from "../../base/clock.ts";
import { YoungMap } from "../../v8/young-map.ts";
import { frameType } from "../wire.ts";
import { type Involvement, involvementsOf } from "./circuit-breaker.ts";
import { type DeathReason, ExecutorProcess, type ExecutorSettings } from "./executor-process.ts";
import type { DownFrame, UpFrame } from "./frames.ts";

/** What an executor tells about one of its tenants. */
export interface TenantListener {
  readonly function: string;
  /** Heap limit of each of its isolates, and how many it may have at work. */
  readonly memoryBytes: number;
  readonly isolates: number;
  /** Attempts of it that are there. */
  readonly size: number;
  frame(frame: UpFrame): void;
  /** Its executor takes again what it is sent, after it had too much before it. */
  roomAgain(): void;
  /** Whether it waits for an answer that should have come long ago. */
  isOverdue(now: number): boolean;
  /** Since when it waits to be told how its code loaded; undefined where it does not. */
  readonly loadingSince: number | undefined;
  /** The executor will end itself, and then once more: has ended. `inside`: events whose code was running. */
  lost(involvement: Involvement, reason: DeathReason, inside: readonly number[]): void;
}

/** What an executor tells whoever keeps it. */
interface KeeperListener {
  /** It is gone; `culprits` are the functions whose doing that may be. */
  died(reason: DeathReason, detail: string, culprits: readonly string[]): void;
  /** Its last function has left. */
  deserted(): void;
}

/**
 * Resident memory of an executor itself, under full load, and the least that any cap grants. It is 50 MiB idle; 150 MiB
 * of garbage were seen at 6,000 events of 30 KB a second. Bytes.
 */
const baseMemory = 200 * 2 ** 20;
const leastCap = 256 * 2 ** 20;

/** Milliseconds between two looks for answers that are overdue. */
const overduePollMs = 2000;

/** Bytes of events that wait in an executor for others of their functions to end. */
const mostWaiting = 8 * 2 ** 20;

/**
 * Milliseconds in which an executor has to do by itself as it said, by a clock of this process. `doomedMs`: to be gone
 * once it is doomed; its neighbours get 2 s of that. `overMs`: to have stopped or to be doomed once an isolate's time
 * is over, which takes 1 s. `loadMs`: to have loaded a module, 2 s of CPU for each that is there, one after another.
 * All have room for a machine that is busy with others.
 */
const doomedMs = 5000;
const overMs = 15_000;
const loadMs = 60_000;
const loadEachMs = 3000;

/** Isolates of one function that an honest executor can be inside at once, with room to spare. */
const maxInside = 64;

interface Inside {
  readonly since: number;
  readonly events: readonly number[];
  /** It broke a limit and is told already, but its thread has not stopped; since then. */
  readonly isOver: boolean;
}

/** An executor process and the tenants on it, with the knowledge of who is running right now. */
export class ExecutorHandle {
  readonly number: number;
  private readonly clock: Clock;
  private readonly process: ExecutorProcess;
  private readonly keeper: KeeperListener;
  private readonly tenants = new Map<number, TenantListener>();
  /** Of the tenants, in bytes: the largest heap limit, and the sum of all isolates'. Kept as they come and go, for thousands. */
  private largest = 0;
  private limits = 0;
  private readonly inside = new YoungMap<number, Map<number, Inside>>();
  private readonly doomers = new Set<number>();
  private lastTenant = 0;
  /** In whose name something was said that no guest can say, or that could not be handled. */
  private blamed: number | undefined;
  /** Those whose code has run here. */
  private readonly ran = new Set<number>();
  /** When its first word came. */
  private spokeAt: number | undefined;
  /** When it was last sent events. */
  private lastSentAt: number;
  /** Bytes of events that it has not begun. */
  private waitingBytes = 0;

  /** `number`: by which its death is known. */
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

  /** A heartbeat alone does not prove honesty: answers have to come as well. */
  private expectAnswers(): void {
    if (this.process.isDead) return;
    const overdue = this.overdue(this.clock.monotonic());
    if (overdue) this.process.kill("silent", `${overdue} is overdue`);
    else this.clock.after(overduePollMs, () => this.expectAnswers(), { unref: true });
  }

  private overdue(now: number): string | undefined {
    const tenants = [...this.tenants.values()];
    if (tenants.some((tenant) => tenant.isOverdue(now))) return "an event's end";
    const mostMs = loadMs + loadEachMs * tenants.length;
    // It cannot load before it has started, for which it has time of its own.
    const { spokeAt = now } = this;
    if (tenants.some(({ loadingSince = now }) => now - Math.max(loadingSince, spokeAt) > mostMs))
      return "a module's load";
    const entries = [...this.inside].flatMap(([id, realms]) =>
      [...realms.values()].map(({ since, isOver }) => ({ since, isOver: isOver || !this.tenants.has(id) })),
    );
    return entries.some(({ since, isOver }) => isOver && now - since > overMs) ? "the end of an isolate" : undefined;
  }

  private room(): void {
    for (const tenant of [...this.tenants.values()]) tenant.roomAgain();
  }

  /** Functions on it. */
  get size(): number {
    return this.tenants.size;
  }

  get isDead(): boolean {
    return this.process.isDead;
  }

  /** Milliseconds since it was last sent an event; 0 while one is there, or a module loads. */
  get idleMs(): number {
    const isBusy = [...this.tenants.values()].some(({ size, loadingSince }) => size > 0 || loadingSince !== undefined);
    return isBusy ? 0 : this.clock.monotonic() - this.lastSentAt;
  }

  /** Whether it can take functions and events. */
  get isUsable(): boolean {
    return !this.process.isDead && this.doomers.size === 0;
  }

  /** Whether so much of what it was sent waits to be taken that it is to be sent no more. */
  get isFull(): boolean {
    return this.process.isFull;
  }

  /** Whether as much waits in it as may. */
  get isAhead(): boolean {
    return this.waitingBytes >= mostWaiting;
  }

  /** So many bytes of events wait in it, or (below 0) do so no more. */
  waits(bytes: number): void {
    const wasAhead = this.isAhead;
    this.waitingBytes += bytes;
    if (wasAhead && !this.isAhead) this.room();
  }

  /** Whether any function's code was ever inside, of which it may have died. */
  get hasRunCode(): boolean {
    return this.ran.size > 0;
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  get peakMemory(): number {
    return this.process.peakMemory;
  }

  /** Adds a tenant and gives its number. */
  add(tenant: TenantListener): number {
    const id = ++this.lastTenant;
    this.tenants.set(id, tenant);
    const { memoryBytes, isolates } = tenant;
    this.limits += memoryBytes * isolates;
    this.largest = Math.max(this.largest, memoryBytes);
    this.capMemory();
    return id;
  }

  remove(id: number): void {
    const tenant = this.tenants.get(id);
    this.tenants.delete(id);
    if (tenant) {
      const { memoryBytes, isolates } = tenant;
      this.limits -= memoryBytes * isolates;
      if (memoryBytes === this.largest)
        this.largest = Math.max(0, ...[...this.tenants.values()].map((other) => other.memoryBytes));
    }
    this.send({ type: frameType.unload, header: { tenant: id } });
    this.capMemory();
    if (this.tenants.size === 0) this.keeper.deserted();
  }

  /** `taken` is called once the frame has left this process, or never will. */
  send(frame: DownFrame, taken?: () => void): void {
    if (frame.type === frameType.events) this.lastSentAt = this.clock.monotonic();
    this.process.send(frame, taken);
  }

  /** Ends it at once; `blamed` is the tenant whose doing it is, where that is known. */
  kill(reason: DeathReason, detail: string, blamed?: number): void {
    if (!this.process.isDead) this.blamed = blamed;
    this.process.kill(reason, detail);
  }

  /** Four times the largest isolate's limit, for one that overshoots; and room for the others to use theirs. */
  private capMemory(): void {
    const { largest, limits } = this;
    this.process.capMemory(Math.max(leastCap, baseMemory + 4 * largest + limits - largest));
  }

  private frame(frame: UpFrame): void {
    this.spokeAt ??= this.clock.monotonic();
    if (!("tenant" in frame)) return;
    const { tenant: id } = frame;
    if (id > this.lastTenant || id === 0) {
      this.process.kill("breach", `it speaks of tenant ${id}, which it never had`);
      return;
    }
    // Also of a function that was unloaded meanwhile: its executor is at its end all the same.
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
      this.tenants.get(id)?.frame(frame);
    } catch (error) {
      this.kill("breach", error instanceof Error ? error.message : "a frame cannot be handled", id);
    }
  }

  /**
   * Keeps account of who is inside, also of a function that was unloaded meanwhile: its thread may still bring the
   * executor down. Gives what an honest executor would not have said.
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

  /** It said itself who cannot be stopped. Everybody leaves now; what runs may finish until it ends itself. */
  private doom(id: number): void {
    const isFirst = this.doomers.size === 0;
    this.doomers.add(id);
    this.tellLost(id, this.tenants.size === 1 ? "proven" : "culprit", "stuck");
    // The others know already, and finish.
    if (!isFirst) return;
    const end = () => this.process.kill("stuck", "it did not end itself");
    this.clock.after(doomedMs, end, { unref: true });
    for (const other of [...this.tenants.keys()]) if (other !== id) this.tellLost(other, "bystander", "stuck");
  }

  private buried(how: DeathReason, detail: string): void {
    const wasDoomed = this.doomers.size > 0;
    const reason = how === "exited" && wasDoomed ? "stuck" : how;
    const now = this.clock.monotonic();
    const inside = [...this.inside].flatMap(([tenant, realms]) =>
      [...realms.values()].map(({ since, isOver }) => ({ tenant, ms: now - since, isOver })),
    );
    const { ran, blamed } = this;
    const involvements = involvementsOf({ reason, tenants: [...this.tenants.keys()], ran, inside, blamed, wasDoomed });
    for (const id of [...this.tenants.keys()]) this.tellLost(id, involvements.get(id) ?? "bystander", reason);
    const culprits = [...involvements].filter(([, involvement]) => named.has(involvement)).map(([id]) => id);
    const known = culprits.length > 0 ? culprits : [...this.doomers];
    const names = known.flatMap((id) => this.tenants.get(id)?.function ?? []);
    this.tenants.clear();
    this.keeper.died(reason, detail, names);
  }

  private tellLost(id: number, involvement: Involvement, reason: DeathReason): void {
    const inside = [...(this.inside.get(id)?.values() ?? [])].flatMap((entry) => entry.events);
    this.tenants.get(id)?.lost(involvement, reason, inside);
  }
}

/** Verdicts of whom a death is told. */
const named: ReadonlySet<Involvement> = new Set(["proven", "culprit", "suspect"]);
