import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { Logger } from "pino";
import { WatchfireError } from "../../base/errors.ts";
import { systemReason } from "../../base/wording.ts";
import type { ExecutorOptions } from "../executor-program.ts";
import { type ExecutorRights, isIsolated, missingRights } from "../rights.ts";
import { exited, greeting, joining, keyFile, maxSupervisorFrame, seen, supervisorFrame } from "../supervisor/frames.ts";
import { encodeFrame, type Frame, FrameReader } from "../wire.ts";
import { framesOf, hearFirstFrame } from "./first-frame.ts";
import type { Launch } from "./link.ts";
import { SocketLink } from "./socket-link.ts";

/** Maximum number of unidentified connections at once, in addition to one for each requested executor. */
const maxStrangers = 64;

/**
 * Milliseconds between a supervisor's end and the next key. The kernel closes process 1's connection microseconds before it ends
 * the other processes of its namespace. After the delay no such process is left that could read the key.
 */
const burialMs = 1000;

type DoorLog = Pick<Logger, "info" | "warn" | "error">;

/**
 * State of the connection to the supervisor. `lost`: processes that it started may still live, so no other process can be trusted
 * to be its successor.
 */
type SupervisorState = "awaited" | "attached" | "gone" | "lost";

/**
 * Executors in a separate container, reached by a unix socket in a folder that both containers mount. A supervisor there starts
 * executors on request. A process may connect if it can open the socket (0660) and knows the key. The key's file exists only
 * while a supervisor is awaited, so never while a guest's code runs. A supervisor serves one parent and ends with its connection;
 * its successor is a new process with new executors. While one is attached, any other process that connects must be a guest that
 * controls its executor, and everything is ended.
 */
export class SupervisorClient {
  private readonly path: string;
  private readonly log: DoorLog;
  private readonly options: ExecutorOptions;
  private readonly server: Server;
  private readonly links = new Map<number, SocketLink>();
  private readonly strangers = new Set<Socket>();
  private wire: Socket | undefined;
  private state: SupervisorState = "awaited";
  private found: ExecutorRights | undefined;
  private memory: number | undefined;
  private coreCount: number | undefined;
  /** Key that the next supervisor must know; empty while no supervisor is awaited. */
  private key = "";
  /** Secret from which the executors' tokens are computed. */
  private secret: Buffer = randomBytes(32);
  private keyTimer: NodeJS.Timeout | undefined;
  private lastId = 0;
  private closed = false;

  private constructor(path: string, log: DoorLog, options: ExecutorOptions) {
    this.path = path;
    this.log = log;
    this.options = options;
    this.server = createServer((socket) => this.meet(socket));
  }

  /**
   * Listens at a path that belongs to this process. A socket that a predecessor left there is replaced. @throws WatchfireError
   */
  static async listen(path: string, log: DoorLog, options: ExecutorOptions = {}): Promise<SupervisorClient> {
    const door = new SupervisorClient(path, log, options);
    try {
      const hadPredecessor = existsSync(path);
      for (const file of [path, keyFile(path)]) rmSync(file, { force: true });
      await new Promise<void>((resolve, reject) => {
        door.server.once("error", reject);
        door.server.listen(path, resolve);
      });
      chmodSync(path, 0o660);
      // Its supervisor may be about to end as well.
      if (hadPredecessor) door.layKeySoon();
      else door.layKey();
    } catch (cause) {
      door.close();
      throw new WatchfireError("WF_SANDBOX_EXECUTOR", {
        what: "the executors' socket cannot be made",
        actual: path,
        hint: "name a path in a folder that this process may write to, at most 100 characters long",
        cause,
      });
    }
    return door;
  }

  /** Starts an executor as soon as a supervisor is attached. */
  readonly launch: Launch = (listener) => {
    const id = ++this.lastId;
    const link = new SocketLink(id, this, {
      ...listener,
      opened: () => listener.opened(),
      data: (chunk) => listener.data(chunk),
      ended: (reason, detail) => {
        this.links.delete(id);
        listener.ended(reason, detail);
      },
    });
    this.links.set(id, link);
    if (this.wire) this.start(link);
    return link;
  };

  /** Rights of the executors of the current or last supervisor; `undefined` before the first. */
  get rights(): ExecutorRights | undefined {
    return this.found;
  }

  /** Memory limit of the executors' container in bytes; `undefined` if it has no limit or the limit is unknown. */
  get memoryLimit(): number | undefined {
    return this.memory;
  }

  /** Number of cores that the executors' container may use, at least 1; `undefined` before a supervisor has connected. */
  get cores(): number | undefined {
    return this.coreCount;
  }

  /** The reason why no executor can be started now, else `undefined`. */
  get trouble(): WatchfireError | undefined {
    if (this.state === "attached") return undefined;
    if (this.state === "lost") {
      return new WatchfireError("WF_SANDBOX_WARDEN_LOST", {
        what: "the executors' supervisor ended",
        actual: this.path,
      });
    }
    const what =
      this.state === "gone" ? "the executors' supervisor is gone" : "no executors' supervisor has connected yet";
    return new WatchfireError("WF_SANDBOX_NO_WARDEN", { what, actual: this.path });
  }

  cap(id: number, bytes: number): void {
    this.send(supervisorFrame.cap, { id, bytes });
  }

  kill(id: number): void {
    this.send(supervisorFrame.kill, { id });
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.keyTimer);
    this.server.close();
    this.wire?.destroy();
    for (const socket of this.strangers) socket.destroy();
    rmSync(keyFile(this.path), { force: true });
  }

  private meet(socket: Socket): void {
    socket.on("error", () => socket.destroy());
    if (this.strangers.size >= maxStrangers + this.links.size) {
      socket.destroy();
      if (this.wire) this.expose(`more than ${maxStrangers} connections say nothing`);
      return;
    }
    this.strangers.add(socket);
    const forget = () => this.strangers.delete(socket);
    socket.once("close", forget);
    hearFirstFrame(socket, (frame) => {
      socket.off("close", forget);
      forget();
      const wrong = this.admit(socket, frame);
      if (wrong === undefined) return;
      socket.destroy();
      if (this.wire) this.expose(wrong);
    });
  }

  /**
   * Checks a connection's first frame. Returns what is wrong with it, else `undefined`. The new owner of the connection resumes
   * it.
   */
  private admit(socket: Socket, frame: Frame | undefined): string | undefined {
    const value = frame && parse(frame.header);
    if (frame?.type === supervisorFrame.join) {
      const { data } = joining.safeParse(value);
      if (!data || !isSame(data.token, this.tokenOf(data.id))) return "a connection has an invented token";
      const link = this.links.get(data.id);
      // Its executor may have been given up before the connection arrived.
      if (link) link.joined(socket);
      else socket.destroy();
      return undefined;
    }
    const { data } = greeting.safeParse(value);
    if (frame?.type !== supervisorFrame.greet || !data) return "a connection speaks as no executor does";
    if (this.wire) return "a second supervisor connects";
    if (!isSame(data.key, this.key)) return "a supervisor connects with a wrong key";
    this.memory = data.memory;
    this.coreCount = data.cores;
    this.welcome(socket, { ...data.rights, jit: this.options.jitless !== true });
    return undefined;
  }

  private welcome(socket: Socket, rights: ExecutorRights): void {
    this.wire = socket;
    this.state = "attached";
    this.found = rights;
    this.secret = randomBytes(32);
    this.takeKey();
    this.log.info({ socket: this.path, rights }, "executors can be started");
    const missing = missingRights(rights);
    if (missing.length > 0) this.log.warn({ missing }, "executors have more rights than they need");
    const reader = new FrameReader(maxSupervisorFrame);
    socket.on("data", (chunk: Buffer) => {
      const frames = framesOf(reader, chunk);
      if (!frames?.every((frame) => this.hear(frame))) socket.destroy();
    });
    socket.once("close", () => this.left());
    socket.resume();
    for (const link of this.links.values()) this.start(link);
  }

  /**
   * Ends the supervisor's connection, because a guest controls its executor and it is unknown which. The supervisor's end takes
   * all executors with it.
   */
  private expose(how: string): void {
    const fault = new WatchfireError("WF_SANDBOX_IMPOSTOR", { what: how, actual: this.path });
    this.log.error({ error: fault.message, code: fault.code }, "executors are ended");
    this.wire?.destroy();
  }

  /** Handles a frame of the supervisor. Returns false for a frame that it would never send. */
  private hear({ type, header }: Frame): boolean {
    const value = parse(header);
    if (type === supervisorFrame.seen) {
      const { data } = seen.safeParse(value);
      const link = data && this.links.get(data.id);
      if (link) link.peakMemory = Math.max(link.peakMemory, data.peak);
      return data !== undefined;
    }
    const { data } = exited.safeParse(value);
    if (type !== supervisorFrame.exited || !data) return false;
    const link = this.links.get(data.id);
    if (link) link.peakMemory = Math.max(link.peakMemory, data.peak);
    link?.end(data.reason, data.detail);
    return true;
  }

  private left(): void {
    this.wire = undefined;
    for (const link of this.links.values()) link.end("exited", "the executors' supervisor is gone");
    if (this.closed) return;
    const isOver = this.found !== undefined && isIsolated(this.found);
    this.state = isOver ? "gone" : "lost";
    const { message, code } = this.trouble ?? {};
    this.log[isOver ? "warn" : "error"]({ error: message, code }, "no executors can be started");
    if (isOver) this.layKeySoon();
  }

  private layKeySoon(): void {
    this.keyTimer = setTimeout(() => {
      try {
        this.layKey();
      } catch (error) {
        this.log.error({ error: systemReason(error) }, "executors' key cannot be written");
        this.layKeySoon();
      }
    }, burialMs);
  }

  private layKey(): void {
    this.key = randomBytes(32).toString("hex");
    writeFileSync(keyFile(this.path), this.key, { mode: 0o640, flag: "wx" });
  }

  private takeKey(): void {
    this.key = "";
    rmSync(keyFile(this.path), { force: true });
  }

  private start(link: SocketLink): void {
    const { id } = link;
    this.send(supervisorFrame.start, { id, token: this.tokenOf(id), jitless: this.options.jitless === true });
    link.started();
  }

  /**
   * Returns an executor's token. Only the supervisor knows it, and it sends the token before the executor's process has the
   * connection.
   */
  private tokenOf(id: number): string {
    return createHmac("sha256", this.secret).update(String(id)).digest("hex");
  }

  private send(type: number, header: unknown): void {
    this.wire?.write(Buffer.concat(encodeFrame(type, header)));
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isSame = (one: string, other: string): boolean =>
  one.length === other.length && other !== "" && timingSafeEqual(Buffer.from(one), Buffer.from(other));
