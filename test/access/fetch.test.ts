import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HostResolver } from "../../runtime/access/resolver.ts";
import type { FunctionManifest } from "../../runtime/manifest/function.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { accessTo, errorOf } from "./api-server.ts";

type Handle = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

/** A web server on loopback, and a fetch that may reach only that server. */
async function web(handle: Handle = (_request, response) => response.end("hello"), more: Parts = {}) {
  const seen: { method: string; url: string; headers: IncomingMessage["headers"]; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, headers, body: body.toString("utf8") });
    handle(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const { egressOf, egress: rules = egressOf?.(port) ?? [{ host: "127.0.0.1", ports: [port] }], ...parts } = more;
  const egress = rules.map((rule): Egress => ({ network: "Public", ...rule }));
  const { call, attempt, asked } = await accessTo({ manifest: { egress }, ...parts });
  const fetch = (url: string, init: object = {}) => call("fetch", { url, ...init });
  return { fetch, seen, port, attempt, asked, origin: `http://127.0.0.1:${port}` };
}

type Egress = FunctionManifest["egress"][number];
/** An egress rule of a manifest, with an optional `network`. */
type Rule = Omit<Egress, "network"> & Partial<Pick<Egress, "network">>;

interface Parts {
  egress?: readonly Rule[];
  egressOf?: (port: number) => readonly Rule[];
  resolver?: HostResolver;
  clusterNetworks?: string[];
  ownPort?: () => number;
  clock?: VirtualClock;
}

function answerOf(reply: Awaited<ReturnType<Awaited<ReturnType<typeof web>>["fetch"]>>) {
  if (!reply.ok) throw new Error(reply.error.message);
  const { body, ...rest } = JSON.parse(reply.json);
  return { ...rest, text: Buffer.from(body, "base64").toString("utf8") };
}

const names =
  (...addresses: string[]): HostResolver =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

describe("fetch", () => {
  it("reaches what the manifest declares, and gives back status, headers and body", async () => {
    const { fetch, seen, origin } = await web((_request, response) => {
      response.writeHead(418, { "x-a": ["1", "2"] });
      response.end("body");
    });
    const body = Buffer.from("sent").toString("base64");
    const answer = answerOf(await fetch(`${origin}/p?q=1#f`, { method: "post", headers: [["X-B", "3"]], body }));
    expect(answer).toMatchObject({
      status: 418,
      statusText: "I'm a Teapot",
      redirected: false,
      url: `${origin}/p?q=1`,
      text: "body",
    });
    expect(answer.headers).toEqual(
      expect.arrayContaining([
        ["x-a", "1"],
        ["x-a", "2"],
      ]),
    );
    expect(seen).toMatchObject([{ method: "POST", url: "/p?q=1", body: "sent", headers: { "x-b": "3" } }]);
  });

  it("never comes to the runtime's own endpoints, however its manifest or a redirect writes their address", async () => {
    let own = 0;
    const hosts = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:7f00:1"];
    const listener = await web();
    own = listener.port;
    const egress = hosts.map((host) => ({ host, ports: [own] }));
    for (const host of hosts) {
      const { fetch } = await web(undefined, { egress, ownPort: () => own });
      const error = errorOf(await fetch(`http://${host.includes(":") ? `[${host}]` : host}:${own}/dead-letters`));
      expect(error).toMatchObject({ type: "FetchError", details: { refused: true } });
      expect(error.message).toMatch(/^WF_ACCESS_OWN_ADDRESS: .* is where this runtime listens itself; /);
    }
    const redirecting = await web(
      (_request, response) => {
        response.writeHead(302, { location: `${listener.origin}/dead-letters` });
        response.end();
      },
      { ownPort: () => own, egressOf: (port) => [...egress, { host: "127.0.0.1", ports: [port] }] },
    );
    expect(errorOf(await redirecting.fetch(redirecting.origin)).message).toContain("WF_ACCESS_OWN_ADDRESS");
    expect(listener.seen).toEqual([]);
  });

  it("to an address that is not declared is told what declaring a private one opens", async () => {
    const { fetch } = await web(undefined, { egress: [] });
    const opened = /add to its egress: .*, if that is intended: the handler then reaches services that listen only/;
    expect(errorOf(await fetch("http://127.0.0.1:81/")).message).toMatch(opened);
    expect(errorOf(await fetch("http://169.254.169.254/")).message).toMatch(opened);
    expect(errorOf(await fetch("http://8.8.8.8/")).message).not.toMatch(opened);
  });

  it.each(["localhost", "LOCALHOST.", "api.localhost"])(
    "by the name %s is told of the address, and comes there once that is declared",
    async (name) => {
      const { fetch, port } = await web(undefined, { egress: [] });
      const { message } = errorOf(await fetch(`http://${name}:${port}/`));
      expect(message).toMatch(
        /; no name may resolve to the machine itself: fetch by its address, and add to the manifest's egress: /,
      );
      const [, host = ""] = /egress: - \{ host: "([^"]+)", ports: \[\d+\] \}, if that is intended/.exec(message) ?? [];
      const declared = await web(undefined, { egressOf: (own) => [{ host, ports: [own] }] });
      expect(answerOf(await declared.fetch(`http://${host}:${declared.port}/`))).toMatchObject({ status: 200 });
    },
  );

  it("by a name that leads to a loopback address is told to fetch by that address", async () => {
    const egress: Rule[] = [{ host: "db.example.com", ports: [80], network: "Private" }];
    const { fetch } = await web(undefined, { egress, resolver: names("127.0.0.1") });
    expect(errorOf(await fetch("http://db.example.com/")).message).toContain(
      "db.example.com leads to 127.0.0.1, which is not a public address; fetch by that address, and declare it as the host, if that is intended",
    );
  });

  it("decodes what was compressed, and says nothing more of it", async () => {
    for (const [coding, bytes] of [
      ["gzip", gzipSync("packed")],
      ["br", brotliCompressSync("packed")],
    ] as const) {
      const { fetch, origin } = await web((_request, response) => {
        response.writeHead(200, { "content-encoding": coding });
        response.end(bytes);
      });
      const answer = answerOf(await fetch(origin));
      expect(answer.text).toBe("packed");
      expect(JSON.stringify(answer.headers)).not.toContain("content-encoding");
    }
  });

  it.each([
    ["HEAD", 200],
    ["GET", 204],
    ["GET", 304],
  ])("takes an answer to %s of status %i that has no body, though it names a coding", async (method, status) => {
    const { fetch, origin } = await web((_request, response) => {
      response.writeHead(status, { "content-encoding": "gzip" });
      response.end();
    });
    expect(answerOf(await fetch(`${origin}/`, { method }))).toMatchObject({ status, text: "" });
  });

  it("is refused for what no egress declares, and names the line to add", async () => {
    const { fetch, seen, port } = await web(undefined, { egress: [{ host: "127.0.0.1", ports: [1] }] });
    const error = errorOf(await fetch(`http://127.0.0.1:${port}/`));
    expect(error).toMatchObject({ type: "FetchError", details: { refused: true } });
    expect(error.message).toContain(`- { host: "127.0.0.1", ports: [${port}] }`);
    expect(seen).toEqual([]);
  });

  it.each([
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "data:text/plain,x",
    "http://user:secret@127.0.0.1/",
    "http://127.0.0.1.nip.io/",
    "http://localhost/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://0.0.0.0/",
    "//127.0.0.1/",
    "nonsense",
  ])("is refused for %s where only 127.0.0.1 is declared", async (url) => {
    const { fetch, asked } = await web(undefined, { egress: [{ host: "127.0.0.1", ports: [80, 443, 21] }] });
    expect(errorOf(await fetch(url)).type).toBe("FetchError");
    expect(asked).toEqual([]);
  });

  it.each([
    "127.0.0.1",
    "127.255.0.3",
    "0.0.0.0",
    "10.1.2.3",
    "172.31.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fd00:ec2::254",
    "::ffff:127.0.0.1",
    "::ffff:a00:1",
    "64:ff9b::169.254.169.254",
    // A NAT64 gateway with this prefix may read the IPv4 address from other bytes of the address.
    "64:ff9b:1:a00:0:100:808:808",
    "2002:7f00:1::",
    "::127.0.0.1",
    "::ffff:0:169.254.169.254",
    "::ffff:0:10.0.0.1",
    "168.63.129.16",
    "::ffff:168.63.129.16",
  ])("is refused where a declared name leads to %s", async (address) => {
    const egress = [{ host: "hooks.example.com", ports: [80] }];
    const { fetch } = await web(undefined, { egress, resolver: names(address) });
    expect(errorOf(await fetch("http://hooks.example.com/"))).toMatchObject({
      type: "FetchError",
      details: { refused: true },
      message: expect.stringContaining("is not a public address"),
    });
  });

  it("is refused where one of a name's addresses is private, however many are not", async () => {
    const egress = [{ host: "hooks.example.com", ports: [80] }];
    const { fetch } = await web(undefined, { egress, resolver: names("8.8.8.8", "10.0.0.1") });
    expect(errorOf(await fetch("http://hooks.example.com/")).details).toEqual({ refused: true });
  });

  it("is refused where a name leads into the cluster's own networks, public though they look", async () => {
    const egress = [{ host: "hooks.example.com", ports: [80] }];
    const { fetch } = await web(undefined, { egress, resolver: names("8.8.8.8"), clusterNetworks: ["8.8.0.0/16"] });
    expect(errorOf(await fetch("http://hooks.example.com/")).details).toEqual({ refused: true });
  });

  it("may lead a declared cluster name to a private address, and never to loopback", async () => {
    const egress = [{ host: "api.team-a.svc", ports: [80] }];
    const inside = await web(undefined, { egress, resolver: names("10.255.255.1"), clock: new VirtualClock() });
    const pending = inside.fetch("http://api.team-a.svc/");
    inside.attempt.abort();
    expect(errorOf(await pending).type).toBe("TimeoutError");
    const loopback = await web(undefined, { egress, resolver: names("127.0.0.1") });
    expect(errorOf(await loopback.fetch("http://api.team-a.svc/")).details).toEqual({ refused: true });
  });

  it.each(["10.255.255.1", "172.31.0.1", "192.168.1.1", "fd00:ec2::254"])(
    "may lead a name to %s where its rule says that its network is private",
    async (address) => {
      const egress: Rule[] = [{ host: "vault.example.com", ports: [80], network: "Private" }];
      const clock = new VirtualClock();
      const inside = await web(undefined, { egress, resolver: names(address, "8.8.8.8"), clock });
      const pending = inside.fetch("http://vault.example.com/");
      inside.attempt.abort();
      expect(errorOf(await pending).type).toBe("TimeoutError");
    },
  );

  it.each(["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "0.0.0.0", "::ffff:127.0.0.1"])(
    "leads no name to %s, though its network is private",
    async (address) => {
      const egress: Rule[] = [{ host: "vault.example.com", ports: [80], network: "Private" }];
      const { fetch } = await web(undefined, { egress, resolver: names(address) });
      expect(errorOf(await fetch("http://vault.example.com/")).details).toEqual({ refused: true });
    },
  );

  it("says which line to add where a name leads to a private address", async () => {
    const egress = [{ host: "vault.example.com", ports: [80] }];
    const { fetch } = await web(undefined, { egress, resolver: names("10.0.0.1") });
    expect(errorOf(await fetch("http://vault.example.com/")).message).toContain("`network: Private`");
  });

  it.each([
    ["*.example.com", "a.example.com", true],
    ["*.example.com", "a.b.example.com", true],
    ["*.example.com", "example.com", false],
    ["*.example.com", "evilexample.com", false],
    ["*.example.com", "a.example.com.evil.net", false],
    ["*.bücher.example", "a.xn--bcher-kva.example", true],
    ["*.0.0.1", "127.0.0.1", false],
  ])("by a rule for %s reaches %s: %s", async (host, asked, isReached) => {
    const { fetch } = await web(undefined, { egress: [{ host, ports: [80] }], resolver: names("10.0.0.1") });
    const { message } = errorOf(await fetch(`http://${asked}/`));
    expect(message).toContain(isReached ? "leads to 10.0.0.1" : "the manifest does not allow");
  });

  it("connects to the addresses that were checked, whatever DNS says afterwards", async () => {
    let asked = 0;
    const rebinding: HostResolver = async () => [{ address: asked++ === 0 ? "192.0.2.1" : "127.0.0.1", family: 4 }];
    const egress = [{ host: "rebind.example.com", ports: [80] }];
    const { fetch, seen } = await web(undefined, { egress, resolver: rebinding });
    for (let n = 0; n < 3; n++) expect(errorOf(await fetch("http://rebind.example.com/")).type).toBe("FetchError");
    expect(seen).toEqual([]);
  });

  it("checks each redirect like a first request", async () => {
    const { fetch, origin, seen } = await web((request, response) => {
      const location = request.url === "/out" ? "http://169.254.169.254/latest/meta-data" : "/end";
      response.writeHead(request.url === "/end" ? 200 : 302, request.url === "/end" ? {} : { location });
      response.end("end");
    });
    expect(answerOf(await fetch(`${origin}/in`))).toMatchObject({
      redirected: true,
      url: `${origin}/end`,
      text: "end",
    });
    expect(errorOf(await fetch(`${origin}/out`)).message).toContain("169.254.169.254:80");
    expect(answerOf(await fetch(`${origin}/out`, { redirect: "manual" })).status).toBe(302);
    expect(errorOf(await fetch(`${origin}/in`, { redirect: "error" })).type).toBe("FetchError");
    expect(seen.map(({ url }) => url)).toEqual(["/in", "/end", "/out", "/out", "/in"]);
  });

  it("follows five redirects and no sixth", async () => {
    const { fetch, origin, seen } = await web((request, response) => {
      response.writeHead(307, { location: `/${Number(request.url?.slice(1)) + 1}` });
      response.end();
    });
    expect(errorOf(await fetch(`${origin}/0`)).message).toContain("more than 5 redirects");
    expect(seen.length).toBe(6);
  });

  it("takes neither credentials to another origin nor a body into a GET", async () => {
    const other = await web();
    const { fetch, origin } = await web(
      (request, response) => {
        response.writeHead(request.url === "/307" ? 307 : 303, { location: `http://127.0.0.1:${other.port}/` });
        response.end();
      },
      { egress: [{ host: "127.0.0.1", ports: Array.from({ length: 65_535 }, (_, port) => port + 1) }] },
    );
    const init = {
      method: "POST",
      headers: [
        ["Authorization", "Bearer x"],
        ["Cookie", "a=b"],
        ["Content-Type", "text/plain"],
      ],
      body: "c2VudA==",
    };
    await fetch(`${origin}/303`, init);
    await fetch(`${origin}/307`, init);
    expect(other.seen.map(({ method, body }) => [method, body])).toEqual([
      ["GET", ""],
      ["POST", "sent"],
    ]);
    for (const { headers } of other.seen) {
      expect(headers).not.toHaveProperty("authorization");
      expect(headers).not.toHaveProperty("cookie");
    }
    expect(other.seen.map(({ headers }) => headers["content-type"])).toEqual([undefined, "text/plain"]);
  });

  it.each([
    [[["Host", "evil.example.com"]]],
    [[["Content-Length", "1"]]],
    [[["Transfer-Encoding", "chunked"]]],
    [[["Proxy-Authorization", "x"]]],
    [[["X-A", "a\r\nX-B: b"]]],
    [[["X A", "a"]]],
    [
      [
        ["X-Big", "x".repeat(16_000)],
        ["X-B", "x".repeat(16_000)],
        ["X-C", "x".repeat(16_000)],
      ],
    ],
  ])("refuses headers that are not the handler's to set: %.40j", async (headers) => {
    const { fetch, origin, seen } = await web();
    expect(errorOf(await fetch(origin, { headers })).type).toBe("FetchError");
    expect(seen).toEqual([]);
  });

  it("refuses what is too large, sent or received, packed or not", async () => {
    const large = await web((_request, response) => response.end(Buffer.alloc(6 * 1024 * 1024)));
    expect(errorOf(await large.fetch(large.origin)).message).toContain("larger than");
    const bomb = await web((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      response.end(gzipSync(Buffer.alloc(64 * 1024 * 1024)));
    });
    expect(errorOf(await bomb.fetch(bomb.origin)).message).toContain("larger than");
    const empties = Buffer.alloc(6 * 1024 * 1024, gzipSync(""));
    for (const [coding, bytes] of [
      ["deflate", deflateRawSync(Buffer.alloc(64 * 1024 * 1024))],
      ["zstd", zstdCompressSync(Buffer.alloc(64 * 1024 * 1024))],
      ["gzip, gzip", gzipSync(gzipSync(Buffer.alloc(64 * 1024 * 1024)))],
      // These decompress to nothing, however much input is read.
      ["gzip", empties],
      ["gzip, gzip", gzipSync(empties)],
    ] as const) {
      const packed = await web((_request, response) => {
        response.writeHead(200, { "content-encoding": coding });
        response.end(bytes);
      });
      expect(errorOf(await packed.fetch(packed.origin)).message).toContain("larger than");
    }
    const body = Buffer.alloc(1024 * 1024 + 1).toString("base64");
    expect(errorOf(await large.fetch(large.origin, { method: "POST", body })).message).toContain("larger than");
    expect(large.seen.length).toBe(1);
  });

  it("waits no longer than the limit, for the answer or for its body", async () => {
    for (const begun of [false, true]) {
      const clock = new VirtualClock();
      const arrived = Promise.withResolvers<void>();
      const { fetch, origin } = await web(
        (_request, response) => {
          if (begun) response.write("begun");
          arrived.resolve();
        },
        { clock },
      );
      const reply = fetch(origin);
      await arrived.promise;
      await clock.advance(30_000);
      expect(errorOf(await reply).type).toBe("TimeoutError");
      expect(clock.timers).toBe(0);
    }
  });

  it("says no more of a failed connection than that it failed", async () => {
    const { fetch } = await web(undefined, { egress: [{ host: "127.0.0.1", ports: [1] }] });
    expect(errorOf(await fetch("http://127.0.0.1:1/"))).toMatchObject({
      type: "FetchError",
      message: "no answer from 127.0.0.1:1: ECONNREFUSED",
      details: { refused: false },
    });
  });
});
