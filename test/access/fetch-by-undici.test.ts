// Compares responses as ctx.fetch shows them with those of undici's own fetch.
import { createServer } from "node:net";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { Headers, fetch as undiciFetch } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { ResponseHeaders } from "../../runtime/sandbox/guest/headers.guest.ts";
import { accessTo, errorOf } from "./api-server.ts";

/** A request that a raw server received, and the bytes of its answer. */
interface Received {
  readonly method: string;
  readonly path: string;
  /** Names in lower case; values are the bytes as Latin-1. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/**
 * A server that sends exactly the given bytes, and closes the connection if `closes` is set. Answers are sent in one piece or
 * byte by byte.
 */
async function rawServer(answer: (received: Received) => { bytes: Buffer; closes?: boolean }) {
  const received: Received[] = [];
  const server = createServer((socket) => {
    let pending = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (data) => {
      pending = Buffer.concat([pending, data]);
      for (let end = pending.indexOf("\r\n\r\n"); end >= 0; end = pending.indexOf("\r\n\r\n")) {
        const [requestLine = "", ...lines] = pending.toString("latin1", 0, end).split("\r\n");
        const headers = new Map(
          lines.map((line) => {
            const colon = line.indexOf(":");
            return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
          }),
        );
        const bodyEnd = end + 4 + Number(headers.get("content-length") ?? 0);
        if (pending.length < bodyEnd) return;
        const [method = "", path = ""] = requestLine.split(" ");
        const one = { method, path, headers, body: pending.toString("utf8", end + 4, bodyEnd) };
        pending = pending.subarray(bodyEnd);
        received.push(one);
        const { bytes, closes = false } = answer(one);
        if (closes) socket.end(bytes);
        else socket.write(bytes);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server does not listen");
  const { call } = await accessTo({
    manifest: { egress: [{ host: "127.0.0.1", ports: [address.port], network: "Public" }] },
  });
  return { received, origin: `http://127.0.0.1:${address.port}`, ours: (args: object) => call("fetch", args as never) };
}

function message(status: string, headers: readonly string[], body: string | Buffer = ""): Buffer {
  const head = `HTTP/1.1 ${status}\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body as string)]);
}

const withLength = (headers: readonly string[], body: string | Buffer, status = "200 OK") =>
  message(status, [...headers, `Content-Length: ${Buffer.byteLength(body)}`], body);
const coded = (coding: string, body: Buffer) => withLength([`Content-Encoding: ${coding}`], body);

/** Headers that belong to the connection, or that no longer apply once a body is decoded. */
const notShown = new Set(["connection", "keep-alive", "transfer-encoding", "content-encoding", "content-length"]);

interface Shown {
  status: number;
  statusText: string;
  url: string;
  redirected: boolean;
  headers: string[][];
  cookies: string[];
  body: string;
}

async function byUndici(url: string, init: object): Promise<Shown | undefined> {
  try {
    const response = await undiciFetch(url, { ...init });
    const body = Buffer.from(await response.arrayBuffer()).toString("base64");
    const { status, statusText, redirected, headers } = response;
    return {
      ...{ status, statusText, redirected, body, url: response.url },
      headers: [...headers].filter(([name]) => !notShown.has(name)),
      cookies: headers.getSetCookie(),
    };
  } catch {
    return undefined;
  }
}

function shownOf(json: string): Shown & { raw: ResponseHeaders } {
  const { status, statusText, url, redirected, headers, body } = JSON.parse(json);
  const raw = new ResponseHeaders(headers);
  return {
    ...{ status, statusText, url, redirected, body, raw },
    headers: [...raw].filter(([name]) => !notShown.has(name)),
    cookies: raw.getSetCookie(),
  };
}

const text = Buffer.from("hello wörld ".repeat(100));
const gzipped = gzipSync(text);
const double = gzipSync(gzipped);

describe("fetch shows as undici's does", () => {
  it.each<[string, Buffer, method?: string]>([
    ["gzip", coded("gzip", gzipped)],
    ["x-gzip", coded("x-gzip", gzipped)],
    ["GZip", coded(" GZip ", gzipped)],
    ["gzip of several members", coded("gzip", Buffer.concat([gzipSync("one"), gzipSync("two")]))],
    ["deflate in zlib's format", coded("deflate", deflateSync(text))],
    ["raw deflate", coded("deflate", deflateRawSync(text))],
    ["br", coded("br", brotliCompressSync(text))],
    ["zstd", coded("zstd", zstdCompressSync(text))],
    ["gzip, gzip", coded("gzip, gzip", double)],
    [
      "two codings in two headers",
      withLength(["Content-Encoding: br", "Content-Encoding: gzip"], gzipSync(brotliCompressSync(text))),
    ],
    ["gzip, br", coded("gzip,br", brotliCompressSync(gzipped))],
    [
      "five codings",
      coded(
        "gzip, gzip, gzip, gzip, gzip",
        [1, 2, 3, 4].reduce((body) => gzipSync(body), gzipped),
      ),
    ],
    ["a coding that is not known", coded("aws-chunked", text)],
    ["a known coding over one that is not known", coded("snappy, gzip", gzipped)],
    ["identity", coded("identity", text)],
    ["an empty body in gzip", coded("gzip", Buffer.alloc(0))],
    ["an empty body in br", coded("br", Buffer.alloc(0))],
    ["an empty body in deflate", coded("deflate", Buffer.alloc(0))],
    ["an empty text in gzip", coded("gzip", gzipSync(""))],
    ["204 in gzip", message("204 No Content", ["Content-Encoding: gzip"])],
    ["304 in gzip", message("304 Not Modified", ["Content-Encoding: gzip", "ETag: x"])],
    ["the answer to HEAD in gzip", message("200 OK", ["Content-Encoding: gzip", "Content-Length: 900"]), "HEAD"],
    [
      "several cookies",
      withLength(
        ["Set-Cookie: a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "set-cookie: b=2", "X-Dup: 1", "x-dup: 2"],
        "c",
      ),
    ],
    ["headers beyond ASCII", withLength(["X-Latin: caf\u00e9", "X-Utf8: caf\u00c3\u00a9", "X-Empty:"], "c")],
    ["a status text", withLength([], "teapot", "418 I am short and stout")],
    ["no status text", withLength([], "x", "200 ")],
    ["a status that nobody knows", withLength([], "x", "599 Custom")],
    [
      "chunks with extensions and a trailer",
      message("200 OK", ["Transfer-Encoding: chunked"], "5;ext=1\r\nhello\r\n1\r\n!\r\n0\r\nX-T: 1\r\n\r\n"),
    ],
    ["early hints", Buffer.concat([message("103 Early Hints", ["Link: </a>"]), withLength([], "after")])],
  ])("%s", async (_what, bytes, method = "GET") => {
    const { ours, origin } = await rawServer(() => ({ bytes }));
    const expected = (await byUndici(`${origin}/a?b=c`, { method })) ?? expect.fail("undici fails");
    const reply = await ours({ url: `${origin}/a?b=c`, method });
    if (!reply.ok) throw new Error(reply.error.message);
    const { raw, ...shown } = shownOf(reply.json);
    expect(shown).toEqual(expected);
    expect(raw.has("transfer-encoding")).toBe(false);
  });

  it.each(
    [301, 302, 303, 307, 308].flatMap((status) =>
      ["GET", "HEAD", "POST", "PUT"].map((method) => [status, method] as const),
    ),
  )("what follows a %i to a %s", async (status, method) => {
    const { ours, origin, received } = await rawServer(({ path }) => ({
      bytes:
        path === "/in"
          ? withLength(["Location: sub/../gr\u00c3\u00bc\u00c3\u009fe?x#frag"], "", `${status} Moved`)
          : withLength([], method === "HEAD" ? "" : "end"),
    }));
    const body = method === "POST" || method === "PUT" ? "sent" : undefined;
    const headers = [
      ["content-type", "text/x"],
      ["x-kept", "1"],
    ];
    const expected = await byUndici(`${origin}/in`, { method, headers, body });
    const [, followedByUndici] = received.splice(0);
    const bytes = body && { body: Buffer.from(body).toString("base64") };
    const reply = await ours({ url: `${origin}/in`, method, headers, ...bytes });
    if (!reply.ok) throw new Error(reply.error.message);
    const { raw: _, ...shown } = shownOf(reply.json);
    expect(shown).toEqual(expected);
    const told = (one: Received | undefined) =>
      one && [
        one.method,
        one.path,
        one.body,
        one.headers.get("content-type"),
        one.headers.get("x-kept"),
        one.headers.get("content-length"),
      ];
    expect(told(received[1])).toEqual(told(followedByUndici));
  });
});

describe("fetch says why it refuses, where undici's takes a part for the whole or gives no reason", () => {
  const cut = (coding: string, bytes: Buffer) => coded(coding, bytes.subarray(0, bytes.length - 12));
  it.each([
    ["gzip", cut("gzip", gzipped)],
    ["raw deflate", cut("deflate", deflateRawSync(text))],
    ["br", cut("br", brotliCompressSync(text))],
    ["zstd", cut("zstd", zstdCompressSync(text))],
    ["gzip within gzip", coded("gzip, gzip", gzipSync(gzipped.subarray(0, gzipped.length - 12)))],
    ["no gzip", coded("gzip", text)],
    ["no br", coded("br", text)],
    ["no zstd", coded("zstd", text)],
    ["six codings", coded("gzip, gzip, gzip, gzip, gzip, gzip", gzipped)],
  ])("%s, cut short or damaged", async (_what, bytes) => {
    const { ours, origin } = await rawServer(() => ({ bytes }));
    const error = errorOf(await ours({ url: origin }));
    expect(error).toMatchObject({ type: "FetchError", details: { refused: false } });
    expect(error.message).toMatch(/^WF_ACCESS_CODING: the body of the answer of 127\.0\.0\.1:\d+ cannot be decoded/);
  });
});

it.each(["gzip", "x-gzip", "deflate", "br", "zstd", "gzip, br"])("an empty body is empty in %s", async (coding) => {
  const { ours, origin } = await rawServer(() => ({ bytes: coded(coding, Buffer.alloc(0)) }));
  const reply = await ours({ url: origin });
  if (!reply.ok) throw new Error(reply.error.message);
  expect(shownOf(reply.json)).toMatchObject({ status: 200, body: "" });
});

describe("fetch fails as undici's does", () => {
  it.each([
    ["a body shorter than its length", message("200 OK", ["Content-Length: 100"], "cut")],
    ["chunks without the last", message("200 OK", ["Transfer-Encoding: chunked"], "5\r\nhello\r\n")],
    [
      "a coded body shorter than its length",
      message("200 OK", ["Content-Encoding: gzip", "Content-Length: 900"], gzipped.subarray(0, 30)),
    ],
    ["a header that holds a zero", withLength(["X-N: a\0b"], "n")],
    ["nothing", Buffer.alloc(0)],
  ])("on %s", async (_what, bytes) => {
    const { ours, origin } = await rawServer(() => ({ bytes, closes: true }));
    expect(await byUndici(origin, {})).toBeUndefined();
    expect(errorOf(await ours({ url: origin }))).toMatchObject({ type: "FetchError", details: { refused: false } });
  });
});

describe("a request is sent as undici's fetch sends it", () => {
  const sent = async (init: object) => {
    const { ours, origin, received } = await rawServer(() => ({ bytes: withLength([], "ok") }));
    const taken = (await byUndici(origin, init)) !== undefined;
    const reply = await ours({ url: `${origin}/`, ...init });
    return { taken, reply, undicis: received[0]?.headers, ours: received[taken ? 1 : 0]?.headers };
  };

  it("with a user agent of the runtime's, and no word of a browser", async () => {
    const { undicis = new Map(), ours = new Map() } = await sent({});
    expect(ours.get("user-agent")).toMatch(/^watchfire\/\d/);
    const own = (headers: ReadonlyMap<string, string>) =>
      Object.fromEntries([...headers].filter(([name]) => !["user-agent", "sec-fetch-mode", "host"].includes(name)));
    expect(own(ours)).toEqual(own(undicis));
  });

  it.each<[string, [string, string][]]>([
    ["values beyond ASCII, as Latin-1", [["X-A", "caf\u00e9 \u00ff"]]],
    ["white space around a value", [["X-A", " \t a b\r\n"]]],
    ["an empty value", [["X-A", ""]]],
    [
      "several values of a name",
      [
        ["X-A", "1"],
        ["x-a", "2"],
        ["Accept", "text/x"],
        ["accept", "text/y"],
      ],
    ],
    [
      "several cookies",
      [
        ["Cookie", "a=1"],
        ["cookie", "b=2"],
      ],
    ],
    [
      "what is usual, set by the handler",
      [
        ["User-Agent", "mine"],
        ["Accept", "x/y"],
        ["Accept-Language", "de"],
      ],
    ],
  ])("with %s", async (_what, headers) => {
    const { undicis = new Map(), ours = new Map(), taken } = await sent({ headers });
    expect(taken).toBe(true);
    for (const [name] of headers) expect(ours.get(name.toLowerCase())).toBe(undicis.get(name.toLowerCase()));
  });

  it.each([["\u0100"], ["\ud83d\ude00"], ["a\nb"], ["a\0b"]])("and not with the header value %j", async (value) => {
    const { taken, reply } = await sent({ headers: [["X-A", value]] });
    expect(taken).toBe(false);
    expect(errorOf(reply).message).toBe("the value of the header x-a cannot be sent");
  });
});

describe("a response's headers", () => {
  const name = fc.constantFrom("a", "A", "Set-Cookie", "set-cookie", "X-B", "x-b", "date");
  const value = fc.string({ maxLength: 5, unit: fc.constantFrom("a", "1", ",", ";", "\u00e9", "=") });

  it("read as the standard's Headers do", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), (pairs) => {
        const standard = new Headers();
        for (const [each, its] of pairs) standard.append(each, its);
        const ours = new ResponseHeaders(pairs);
        expect([...ours]).toEqual([...standard]);
        expect([...ours.entries()]).toEqual([...standard.entries()]);
        expect([...ours.keys()]).toEqual([...standard.keys()]);
        expect([...ours.values()]).toEqual([...standard.values()]);
        expect(ours.getSetCookie()).toEqual(standard.getSetCookie());
        const heard: (readonly [string, string])[] = [];
        ours.forEach((its, each) => {
          heard.push([each, its]);
        });
        expect(heard).toEqual([...standard]);
        for (const each of ["a", "A", "SET-COOKIE", "x-b", "none"]) {
          expect(ours.get(each)).toBe(standard.get(each));
          expect(ours.has(each)).toBe(standard.has(each));
        }
      }),
    );
  });
});
