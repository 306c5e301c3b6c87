import type { IncomingMessage, ServerResponse } from "node:http";
import { gzip } from "node:zlib";
import { stringify as toYaml } from "yaml";
import { ApiError, PathNotFound, type Status } from "../api/status.ts";
import { encodeJson, parseJson } from "../exact-json.ts";

/** Smaller answers are not compressed (`defaultGzipThresholdBytes`). */
const gzipFrom = 128 * 1024;

/** Ends every JSON document. */
const newline = Buffer.from("\n");

/** Formats a `Warning` header. Its text must not contain line breaks. */
const warningText = (text: string) => `299 - ${JSON.stringify(text.replace(/[^\x20-\x7e]/g, " ").slice(0, 256))}`;

/** One response. */
export class Reply {
  private readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly warnings: string[] = [];

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request;
    this.response = response;
  }

  /** Sends existing JSON bytes. */
  bytes(code: number, pieces: Iterable<Buffer>, contentType = "application/json"): void {
    const body = Buffer.concat([...pieces, ...(contentType.startsWith("application/json") ? [newline] : [])]);
    const yaml = contentType.startsWith("application/yaml");
    this.send(code, yaml ? Buffer.from(toYaml(parseJson(body.toString("utf8")))) : body, contentType);
  }

  json(code: number, value: unknown, contentType = "application/json"): void {
    const pretty = this.wantsPretty();
    const text = contentType.startsWith("application/yaml") ? toYaml(value) : `${encodeJson(value, pretty ? 2 : 0)}\n`;
    this.send(code, Buffer.from(text), contentType);
  }

  text(code: number, text: string): void {
    this.send(code, Buffer.from(text), "text/plain; charset=utf-8");
  }

  status(status: Status): void {
    const retry = status.details?.retryAfterSeconds;
    if (retry) this.response.setHeader("Retry-After", String(retry));
    this.json(status.code ?? 200, status);
  }

  /** Answers a request that failed with `error`. */
  failure(error: unknown): void {
    if (this.response.headersSent) {
      this.response.destroy();
      return;
    }
    if (error instanceof PathNotFound) this.text(404, "404 page not found\n");
    else if (error instanceof ApiError) {
      if (error.code === 413) this.response.setHeader("Connection", "close");
      this.status(error.status);
    } else {
      const message = `Internal error occurred: ${error instanceof Error ? error.message : String(error)}`;
      this.status(new ApiError(500, "InternalError", message, { causes: [{ message }] }).status);
    }
  }

  /** Writes the headers of a stream; the caller sends the body. */
  stream(contentType: string): void {
    this.header(contentType);
    this.response.writeHead(200);
  }

  private wantsPretty(): boolean {
    return new URL(`https://localhost${this.request.url}`).searchParams.get("pretty") === "true";
  }

  private header(contentType: string): void {
    this.response.setHeader("Content-Type", contentType);
    this.response.setHeader("Cache-Control", "no-cache, private");
    if (this.warnings.length > 0) this.response.setHeader("Warning", [...new Set(this.warnings)].map(warningText));
  }

  private send(code: number, body: Buffer, contentType: string): void {
    this.header(contentType);
    const packs = /\bgzip\b/.test(String(this.request.headers["accept-encoding"] ?? ""));
    if (!packs || body.length < gzipFrom) {
      this.finish(code, body);
      return;
    }
    gzip(body, { level: 1 }, (error, packed) => {
      if (!error) {
        this.response.setHeader("Content-Encoding", "gzip");
        this.response.setHeader("Vary", "Accept-Encoding");
      }
      this.finish(code, error ? body : packed);
    });
  }

  private finish(code: number, body: Buffer): void {
    this.response.setHeader("Content-Length", body.length);
    this.response.writeHead(code);
    this.response.end(this.request.method === "HEAD" ? undefined : body);
  }
}
