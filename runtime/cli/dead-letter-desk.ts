import type { z } from "zod";
import { DeadLetters } from "../checkpoint/dead-letters.ts";
import { SqliteStore } from "../checkpoint/sqlite.ts";
import type { DeadLetterPage } from "../checkpoint/store.ts";
import { WatchfireError } from "../errors.ts";
import { readAddress } from "../observe/address-file.ts";
import {
  type DeadLetterDetail,
  type DeadLetterRow,
  deadLetterRowSchema,
  deadLetterSchema,
  describeDeadLetter,
  describeSummary,
  failureSchema,
} from "../observe/dead-letter.ts";
import { readToken } from "../observe/token-file.ts";

/** Where the dead letters are reached: the data folder while no runtime holds it, or a runtime's own address. */
export interface DeadLetterDesk {
  /** Oldest first; at most `deadLetterPageSize`. */
  list(page: Pick<DeadLetterPage, "after" | "function">): Promise<DeadLetterRow[]>;
  show(id: string): Promise<DeadLetterDetail>;
  /** Of an id that cannot be replayed all are refused. */
  replay(ids: readonly string[]): Promise<void>;
  drop(ids: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/**
 * Of a folder that a runtime uses: that runtime's, at the address and with the token that it left there.
 * @throws WatchfireError of the checkpoint section
 */
export function openFolder(folder: string): DeadLetterDesk {
  try {
    return openStopped(folder);
  } catch (error) {
    const url = readAddress(folder);
    if (!(error instanceof WatchfireError) || error.code !== "WF_CHECKPOINT_LOCKED" || url === undefined) throw error;
    return openRuntime(url, readToken(folder));
  }
}

function openStopped(folder: string): DeadLetterDesk {
  const store = new SqliteStore({ folder, maintenance: true });
  const letters = new DeadLetters(store);
  return {
    list: async (page) => (await letters.list(page)).map(describeSummary),
    show: async (id) => describeDeadLetter(await letters.show(id)),
    replay: (ids) => letters.replay(ids),
    drop: (ids) => letters.drop(ids),
    close: () => store.close(false),
  };
}

/** A replay may write a thousand events; a runtime that takes longer than this hangs. */
const answerMs = 60_000;

/** `token` is that of its data folder. @throws WatchfireError WF_CLI_USAGE unless `url` is one of http or https */
export function openRuntime(url: string, token: string | undefined): DeadLetterDesk {
  const base = baseOf(url);
  const ask = async (path: string, body?: unknown): Promise<unknown> => {
    const bearing = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const headers = { "content-type": "application/json", ...bearing };
    const post = { method: "POST", body: JSON.stringify(body) };
    const signal = AbortSignal.timeout(answerMs);
    let response: Response;
    try {
      response = await fetch(new URL(path, base), { ...(body === undefined ? {} : post), headers, signal });
    } catch (cause) {
      const what = signal.aborted ? `nothing is answered within ${answerMs / 1000} s` : "no runtime answers";
      throw new WatchfireError("WF_CLI_UNREACHABLE", { what, actual: url, cause });
    }
    const answer: unknown = await response.json().catch(() => undefined);
    if (!response.ok) throw refusal(response.status, answer, url);
    return answer;
  };
  return {
    list: async (page) => {
      const query = new URLSearchParams(Object.entries(page).filter(([, value]) => value !== undefined));
      return understood(deadLetterRowSchema.array(), await ask(`dead-letters?${query}`), url);
    },
    show: async (id) => understood(deadLetterSchema, await ask(`dead-letters/${encodeURIComponent(id)}`), url),
    replay: async (ids) => void (await ask("dead-letters/replay", { ids })),
    drop: async (ids) => void (await ask("dead-letters/drop", { ids })),
    close: async () => undefined,
  };
}

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

/** What the runtime said, as if it were said here. */
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
    what: `what answers at ${url} is no Watchfire runtime`,
    actual,
    hint: "take the address that the runtime's --listen or --port names",
  });
