import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { networkInterfaces } from "node:os";
import { expect, onTestFinished, test } from "vitest";
import type { HostResolver } from "../../runtime/access/resolver.ts";
import { accessTo, errorOf } from "./api-server.ts";

/** A proxy on loopback that resolves every name to one web server. */
async function behindProxy(
  resolver: HostResolver,
  more: { noProxy?: string; ownPort?: number; hosts?: string[] } = {},
) {
  const origin = await serve((incoming, answer) => answer.end(`hello ${incoming.headers.host}`));
  const asked: string[] = [];
  const proxy = createServer((incoming, answer) => {
    asked.push(`${incoming.method} ${incoming.url}`);
    const { method = "GET", headers } = incoming;
    const { pathname } = new URL(incoming.url ?? "");
    const onward = request({ port: origin, method, path: pathname, headers: { ...headers } }, (back) =>
      back.pipe(answer.writeHead(back.statusCode ?? 0, back.headers)),
    );
    incoming.pipe(onward);
  });
  proxy.on("connect", (incoming: IncomingMessage, socket, head) => {
    asked.push(`CONNECT ${incoming.url}`);
    const onward = connect(origin, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    for (const end of [onward, socket]) end.on("error", () => onward.destroy());
  });
  const port = await listening(proxy);
  const url = `http://user:secret@127.0.0.1:${port}`;
  const proxies = { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: more.noProxy };
  const hosts = more.hosts ?? ["api.example.com"];
  const egress = hosts.map((host) => ({ host, ports: [80, 443, more.ownPort ?? 8080], network: "Public" as const }));
  const ownPort = () => more.ownPort;
  const { call } = await accessTo({ manifest: { egress }, resolver, proxies, ownPort });
  return { asked, port, fetch: (to: string) => call("fetch", { url: to }) };
}

function listening(server: ReturnType<typeof createServer>): Promise<number> {
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

const serve = (handle: Parameters<typeof createServer>[1]) => listening(createServer(handle));

const noDns: HostResolver = async () => Promise.reject(new Error("ENOTFOUND"));
const leadsTo =
  (address: string): HostResolver =>
  async () => [{ address, family: 4 }];

function bodyOf(reply: { readonly ok: boolean; readonly json?: string }): string {
  return Buffer.from(JSON.parse(reply.json ?? "{}").body ?? "", "base64").toString("utf8");
}

test("a name that only the proxy can look up is fetched through it", async () => {
  const { fetch, asked } = await behindProxy(noDns);
  expect(bodyOf(await fetch("http://api.example.com/v1"))).toBe("hello api.example.com");
  expect(asked).toEqual(["GET http://api.example.com/v1"]);
});

test("https goes through the proxy in a tunnel, by name", async () => {
  const { fetch, asked } = await behindProxy(noDns);
  // The target does not speak TLS; the test is only about the tunnel.
  expect(errorOf(await fetch("https://api.example.com/")).type).toBe("FetchError");
  expect(asked).toEqual(["CONNECT api.example.com:443"]);
});

test("a proxy opens no host that the manifest does not name", async () => {
  const { fetch, asked } = await behindProxy(noDns);
  expect(errorOf(await fetch("http://other.example.com/")).details).toEqual({ refused: true });
  expect(asked).toEqual([]);
});

test.each(["127.0.0.1", "169.254.169.254", "10.1.2.3"])(
  "a name that leads to %s is refused before the proxy hears of it",
  async (address) => {
    const { fetch, asked } = await behindProxy(leadsTo(address));
    expect(errorOf(await fetch("http://api.example.com/")).message).toContain(address);
    expect(asked).toEqual([]);
  },
);

test("a proxy leads to none of the runtime's own endpoints", async () => {
  const own = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ internal, family }) => !internal && family === "IPv4")?.address;
  const address = own ?? "127.0.0.1";
  const { fetch, asked } = await behindProxy(leadsTo(address), {
    ownPort: 9090,
    hosts: [address, "api.example.com"],
  });
  expect(errorOf(await fetch(`http://${address}:9090/`)).message).toContain("WF_ACCESS_OWN_ADDRESS");
  expect(errorOf(await fetch("http://api.example.com:9090/")).message).toContain("WF_ACCESS_OWN_ADDRESS");
  expect(asked).toEqual([]);
});

test("a host of NO_PROXY is not fetched through the proxy", async () => {
  const { fetch, asked } = await behindProxy(noDns, { noProxy: ".example.com" });
  expect(errorOf(await fetch("http://api.example.com/")).message).toContain("has no address");
  expect(asked).toEqual([]);
});

test("an error of the proxy shows nothing of its password", async () => {
  const proxies = { HTTP_PROXY: "ftp://user:secret@proxy.example.com" };
  const egress = [{ host: "api.example.com", ports: [80], network: "Public" as const }];
  const { call } = await accessTo({ manifest: { egress }, resolver: noDns, proxies });
  const { message } = errorOf(await call("fetch", { url: "http://api.example.com/" }));
  expect(message).toContain("proxy for http://");
  expect(message).not.toContain("secret");
});
