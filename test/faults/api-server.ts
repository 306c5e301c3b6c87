import { createServer, type Server, type Socket } from "node:net";
import { Waiters } from "../tools/waiters.ts";

/** One request that a scripted server received, and the socket to answer it on. */
export class Exchange {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: ReadonlyMap<string, string>;
  readonly socket: Socket;
  private readonly lines: readonly [string, string][];

  constructor(head: string, socket: Socket) {
    const [requestLine = "", ...lines] = head.split("\r\n");
    const url = new URL(requestLine.split(" ")[1] ?? "/", "http://server");
    this.path = url.pathname;
    this.query = url.searchParams;
    this.socket = socket;
    this.lines = lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    });
    this.headers = new Map(this.lines);
  }

  /** Every value of a repeated header. */
  all(name: string): string[] {
    return this.lines.flatMap(([header, value]) => (header === name ? [value] : []));
  }

  get isWatch(): boolean {
    return this.query.has("watch");
  }

  /** Sends a complete answer; the connection stays open. */
  reply(status: number, body: string, headers: Record<string, string> = {}): void {
    const bytes = Buffer.from(body);
    this.head(status, { "content-type": "application/json", "content-length": String(bytes.length), ...headers });
    this.socket.write(bytes);
  }

  status(code: number, reason: string, more: object = {}, headers: Record<string, string> = {}): void {
    this.reply(code, JSON.stringify(statusObject(code, reason, more)), headers);
  }

  /** Starts a chunked answer that is sent piece by piece. */
  stream(headers: Record<string, string> = {}): Stream {
    this.head(200, { "content-type": "application/json", "transfer-encoding": "chunked", ...headers });
    return new Stream(this.socket);
  }

  head(status: number, headers: Record<string, string>): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket.write(`HTTP/1.1 ${status} Scripted\r\n${lines.join("")}\r\n`);
  }
}

/** The body of a chunked answer, which the test controls to the byte. */
export class Stream {
  private readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /** Sends bytes as one chunk. */
  send(data: string | Buffer): this {
    const bytes = Buffer.from(data as string);
    this.socket.write(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]));
    return this;
  }

  /** Sends each object on a separate line. */
  lines(...objects: object[]): this {
    return this.send(objects.map((object) => `${JSON.stringify(object)}\n`).join(""));
  }

  /** Ends the body as HTTP specifies. */
  end(): void {
    this.socket.write("0\r\n\r\n");
  }

  /** Closes the connection without ending the body. */
  fin(): void {
    this.socket.end();
  }

  /** Resets the connection. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}

type Answer = (exchange: Exchange) => void;

/** A scripted API server on real sockets. A request without a script waits until the test answers it. */
export class ScriptedServer {
  readonly requests: Exchange[] = [];
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly scripts: { matches: (exchange: Exchange) => boolean; answers: Answer[] }[] = [];
  private readonly waiters = new Waiters();

  private constructor(server: Server) {
    this.server = server;
    server.on("connection", (socket) => this.serve(socket));
  }

  static async start(): Promise<ScriptedServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new ScriptedServer(server);
  }

  get url(): string {
    const address = this.server.address();
    if (address === null || typeof address === "string") throw new Error("the server does not listen");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.sockets.size;
  }

  /**
   * Answers matching requests with the given answers in order; the last one is repeated. Later scripts take precedence.
   */
  script(matches: (exchange: Exchange) => boolean, ...answers: Answer[]): void {
    this.scripts.unshift({ matches, answers });
  }

  /** Resolves with the `count`th matching request as soon as it arrives. */
  request(matches: (exchange: Exchange) => boolean, count = 1): Promise<Exchange> {
    return this.waiters.until(`request ${count} of its kind`, () => this.requests.filter(matches)[count - 1]);
  }

  count(matches: (exchange: Exchange) => boolean): number {
    return this.requests.filter(matches).length;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    let pending = "";
    socket.on("data", (data) => {
      pending += data.toString("latin1");
      for (let end = pending.indexOf("\r\n\r\n"); end >= 0; end = pending.indexOf("\r\n\r\n")) {
        const head = pending.slice(0, end);
        pending = pending.slice(end + 4);
        this.answer(new Exchange(head, socket));
      }
    });
  }

  private answer(exchange: Exchange): void {
    this.requests.push(exchange);
    const script = this.scripts.find(({ matches }) => matches(exchange));
    const answer = script && script.answers.length > 1 ? script.answers.shift() : script?.answers[0];
    answer?.(exchange);
    this.waiters.wake();
  }
}

/** A metav1.Status. */
export function statusObject(code: number, reason: string, more: object = {}): object {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code, reason, message: reason, ...more };
}

/** A ConfigMap as an API server shows it. */
export function configMap(name: string, resourceVersion: string | number, more: object = {}): object {
  return {
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { name, namespace: "team-a", uid: `uid-${name}`, resourceVersion: String(resourceVersion), ...more },
    data: { revision: String(resourceVersion) },
  };
}

/** A line of a watch. */
export function event(type: string, object: object): object {
  return { type, object };
}

export function bookmark(resourceVersion: string | number, initialEnd = false, kind = "ConfigMap"): object {
  const annotations = initialEnd ? { annotations: { "k8s.io/initial-events-end": "true" } } : {};
  const metadata = { resourceVersion: String(resourceVersion), ...annotations };
  return event("BOOKMARK", { kind, apiVersion: "v1", metadata });
}

/** The body of a LIST of ConfigMaps. Items have neither kind nor apiVersion, as on a real server. */
export function configMapList(resourceVersion: string | number, items: object[], more: object = {}): string {
  const bare = items.map((item) => {
    const { kind: _kind, apiVersion: _apiVersion, ...rest } = item as Record<string, unknown>;
    return rest;
  });
  const metadata = { resourceVersion: String(resourceVersion), ...more };
  return JSON.stringify({ kind: "ConfigMapList", apiVersion: "v1", metadata, items: bare });
}
