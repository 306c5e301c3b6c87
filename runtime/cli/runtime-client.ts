import type { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { parseExactly } from "../base/exact-json.ts";
import { version } from "../base/version.ts";
import { reasonHeader } from "../control/access/reason.ts";
import { failureSchema } from "../observe/failure.ts";

/** Timeout of an answer, in milliseconds. A replay may write a thousand events; a runtime that takes longer than this hangs. */
const answerMs = 60_000;

/** Client of a runtime's endpoints, including those for this machine only. */
export class RuntimeClient {
  readonly url: string;
  private readonly base: URL;
  private readonly token: string | (() => Promise<string>) | undefined;
  private readonly reason: string | undefined;

  /**
   * @param token from the runtime's data folder, or a source of tokens of the cluster
   * @param reason why changes are asked for, for the runtime's audit
   * @throws WatchfireError WF_CLI_USAGE unless `url` is http or https
   */
  constructor(url: string, token: string | (() => Promise<string>) | undefined, reason?: string) {
    this.url = url;
    this.base = baseOf(url);
    this.token = token;
    this.reason = reason;
  }

  /**
   * Sends a GET, or a POST if there is a `body`.
   * @throws WatchfireError the runtime's error, or WF_CLI_UNREACHABLE without an answer
   */
  async ask<T>(schema: z.ZodType<T>, path: string, body?: unknown): Promise<T> {
    const { url, base, reason } = this;
    const token = typeof this.token === "function" ? await this.token() : this.token;
    const headers = {
      "content-type": "application/json",
      "user-agent": `watchfire/${version}`,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(reason !== undefined && { [reasonHeader]: encodeURIComponent(reason) }),
    };
    const post = { method: "POST", body: JSON.stringify(body) };
    const signal = AbortSignal.timeout(answerMs);
    let response: Response;
    try {
      response = await fetch(new URL(path, base), { ...(body === undefined ? {} : post), headers, signal });
    } catch (cause) {
      throw new WatchfireError("WF_CLI_UNREACHABLE", { ...unanswered(cause, signal.aborted), actual: url, cause });
    }
    const answer: unknown = await response
      .text()
      .then(parseExactly)
      .catch(() => undefined);
    if (!response.ok) throw refusal(response.status, answer, url);
    return understood(schema, answer, url);
  }
}

/** Describes why there is no answer. A runtime that was reached may have executed the request nevertheless. */
function unanswered(cause: unknown, late: boolean): { readonly what: string; readonly hint?: string } {
  const hint = "it may have carried out the request, or still do so: check before you repeat it";
  if (late) return { what: `no answer within ${answerMs / 1000} s`, hint };
  const isReached = cause instanceof Error && codesOfReached.has((cause.cause as NodeJS.ErrnoException)?.code ?? "");
  return isReached
    ? { what: "the runtime closed the connection before it answered", hint }
    : { what: "no runtime answers" };
}

/** Error codes of connections that had been established. */
const codesOfReached: ReadonlySet<string> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

function baseOf(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined;
  if (base && /^https?:$/.test(base.protocol)) return new URL(`${base.pathname.replace(/\/?$/, "/")}`, base);
  const meant = `http://${url}`;
  const hint = /^[\w.-]+:\d+$/.test(url) && URL.canParse(meant) ? meant : "http://127.0.0.1:9464";
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "--url takes an http or https URL",
    actual: url,
    hint: `such as ${hint}`,
  });
}

/** Returns the runtime's error as if it had occurred here. */
function refusal(status: number, answer: unknown, url: string): WatchfireError {
  const said = failureSchema.safeParse(answer);
  if (said.data?.fault) return new WatchfireError(said.data.fault.code, said.data.fault);
  if (!said.success) return stranger(url, `status ${status}`);
  return new WatchfireError("WF_CLI_REFUSED", { what: said.data.error, actual: `status ${status}` });
}

function understood<T>(schema: z.ZodType<T>, answer: unknown, url: string): T {
  const read = schema.safeParse(answer);
  if (read.success) return read.data;
  throw stranger(url, "another answer");
}

const stranger = (url: string, actual: string): WatchfireError =>
  new WatchfireError("WF_CLI_UNREACHABLE", {
    what: `the server at ${url} is not a Watchfire runtime`,
    actual,
    hint: "take the address that the runtime's --listen or --port names",
  });
