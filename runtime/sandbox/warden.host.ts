import { randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { Logger } from "pino";
import { WatchfireError } from "../errors.ts";
import type { Launch } from "./link.host.ts";
import { SocketLink } from "./socket-link.host.ts";
import { exited, greeting, joining, keyFile, maxWardenFrame, seen, wardenFrame } from "./warden-frames.ts";
import { encodeFrame, type Frame, FrameError, FrameReader } from "./wire.ts";

/** Milliseconds that a connection has to say who it is. */
const greetMs = 5000;
/** Connections that may be saying who they are at once. */
const maxStrangers = 64;

/**
 * Executors in a container of their own, over a unix socket in a folder that both containers have: a warden there starts them
 * when asked. Who may connect: whoever can open the socket (0660), and knows the key, which lies beside it only while no
 * warden is connected, so never while a guest's code runs. A warden that comes again is a new one, and so are its executors.
 */
export class Warden {
  private readonly path: string;
  private readonly log: Pick<Logger, "info" | "warn">;
  private readonly server: Server;
  private readonly links = new Map<number, SocketLink>();
  private readonly tokens = new Map<string, number>();
  private readonly strangers = new Set<Socket>();
  private wire: Socket | undefined;
  private key = "";
  private lastId = 0;
  private closed = false;

  private constructor(path: string, log: Pick<Logger, "info" | "warn">) {
    this.path = path;
    this.log = log;
    this.server = createServer((socket) => this.meet(socket));
  }

  /** Listens at a path that is this process' own; a socket that a predecessor left there is replaced. @throws WatchfireError */
  static async listen(path: string, log: Pick<Logger, "info" | "warn">): Promise<Warden> {
    const warden = new Warden(path, log);
    try {
      rmSync(path, { force: true });
      warden.layKey();
      await new Promise<void>((resolve, reject) => {
        warden.server.once("error", reject);
        warden.server.listen(path, resolve);
      });
      chmodSync(path, 0o660);
    } catch (cause) {
      throw new WatchfireError("WF_SANDBOX_EXECUTOR", {
        what: "the executors' socket cannot be made",
        actual: path,
        hint: "name a path in a folder that this process may write to, at most 100 characters long",
        cause,
      });
    }
    return warden;
  }

  /** Starts an executor as soon as a warden is there. */
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

  cap(id: number, bytes: number): void {
    this.tell(wardenFrame.cap, { id, bytes });
  }

  kill(id: number): void {
    this.tell(wardenFrame.kill, { id });
  }

  close(): void {
    this.closed = true;
    this.server.close();
    this.wire?.destroy();
    for (const socket of this.strangers) socket.destroy();
    rmSync(keyFile(this.path), { force: true });
  }

  /** A connection says who it is in its first frame, soon, or goes. */
  private meet(socket: Socket): void {
    socket.on("error", () => socket.destroy());
    if (this.strangers.size >= maxStrangers) {
      socket.destroy();
      return;
    }
    this.strangers.add(socket);
    const timer = setTimeout(() => socket.destroy(), greetMs);
    const forget = () => {
      clearTimeout(timer);
      this.strangers.delete(socket);
    };
    socket.once("close", forget);
    let pending: Buffer = Buffer.alloc(0);
    const first = (chunk: Buffer) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const length = pending.length < 4 ? undefined : pending.readUInt32LE(0) + 4;
      if (length === undefined || (length <= maxWardenFrame && pending.length < length)) return;
      socket.pause();
      socket.off("data", first);
      socket.off("close", forget);
      forget();
      const [frame] = framesOf(new FrameReader(maxWardenFrame), pending.subarray(0, length)) ?? [];
      // An executor may have spoken already behind its warden's greeting.
      if (pending.length > length) socket.unshift(pending.subarray(length));
      if (!frame || !this.admit(socket, frame)) socket.destroy();
      else socket.resume();
    };
    socket.on("data", first);
  }

  private admit(socket: Socket, { type, header }: Frame): boolean {
    const value = parse(header);
    if (type === wardenFrame.join) {
      const token = joining.safeParse(value).data?.token ?? "";
      const link = this.links.get(this.tokens.get(token) ?? 0);
      this.tokens.delete(token);
      link?.joined(socket);
      return link !== undefined;
    }
    const key = greeting.safeParse(value).data?.key;
    if (type !== wardenFrame.greet || key === undefined || this.wire || !isSame(key, this.key)) return false;
    this.welcome(socket);
    return true;
  }

  private welcome(socket: Socket): void {
    this.wire = socket;
    this.key = "";
    rmSync(keyFile(this.path), { force: true });
    this.log.info({ socket: this.path }, "executors can be started");
    const reader = new FrameReader(maxWardenFrame);
    socket.on("data", (chunk: Buffer) => {
      const frames = framesOf(reader, chunk);
      if (!frames?.every((frame) => this.hear(frame))) socket.destroy();
    });
    socket.once("close", () => this.left());
    for (const link of this.links.values()) this.start(link);
  }

  /** False for what no warden of ours says. */
  private hear({ type, header }: Frame): boolean {
    const value = parse(header);
    if (type === wardenFrame.seen) {
      const { data } = seen.safeParse(value);
      const link = data && this.links.get(data.id);
      if (link) link.peakMemory = Math.max(link.peakMemory, data.peak);
      return data !== undefined;
    }
    const { data } = exited.safeParse(value);
    if (type !== wardenFrame.exited || !data) return false;
    const link = this.links.get(data.id);
    if (link) link.peakMemory = Math.max(link.peakMemory, data.peak);
    link?.end(data.reason, data.detail);
    return true;
  }

  private left(): void {
    this.wire = undefined;
    this.tokens.clear();
    for (const link of this.links.values()) link.end("exited", "the executors' warden is gone");
    if (this.closed) return;
    this.log.warn({ socket: this.path }, "no executors can be started until a warden connects");
    this.layKey();
  }

  private layKey(): void {
    this.key = randomBytes(32).toString("hex");
    rmSync(keyFile(this.path), { force: true });
    writeFileSync(keyFile(this.path), this.key, { mode: 0o640, flag: "wx" });
  }

  private start(link: SocketLink): void {
    const token = randomBytes(16).toString("hex");
    this.tokens.set(token, link.id);
    this.tell(wardenFrame.start, { id: link.id, token });
    link.started();
  }

  private tell(type: number, header: unknown): void {
    this.wire?.write(Buffer.concat(encodeFrame(type, header)));
  }
}

function framesOf(reader: FrameReader, chunk: Buffer): Frame[] | undefined {
  try {
    return [...reader.push(chunk)];
  } catch (error) {
    if (error instanceof FrameError) return undefined;
    throw error;
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
