import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Relays connections to a server on this machine, and can stop to relay, as a server does that hangs. */
export class Relay implements AsyncDisposable {
  /** The relay's address, in place of the server's. */
  readonly url: string;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private hangs = false;

  private constructor(server: Server, url: string) {
    this.server = server;
    this.url = url;
  }

  static async to(url: string): Promise<Relay> {
    const { protocol, hostname, port } = new URL(url);
    const server = createServer({ pauseOnConnect: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const relay = new Relay(server, `${protocol}//127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.on("connection", (client) => {
      const upstream = connect(Number(port), hostname);
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        relay.sockets.add(socket);
        socket.on("data", (data) => other.write(data));
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          relay.sockets.delete(socket);
          other.destroy();
        });
        if (relay.hangs) socket.pause();
        else socket.resume();
      }
    });
    return relay;
  }

  hang(): void {
    this.hangs = true;
    for (const socket of this.sockets) socket.pause();
  }

  /** Ends all connections. New ones are relayed. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  goOn(): void {
    this.hangs = false;
    for (const socket of this.sockets) socket.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, "close");
  }
}
