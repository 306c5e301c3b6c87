import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context, MiddlewareHandler, Next } from "hono";
import { WatchfireError } from "../../base/errors.ts";
import { clean, cut } from "../../base/wording.ts";
import type { DeadLetterService } from "../../observe/control-routes.ts";
import { bears } from "../../observe/token-file.ts";
import { withoutSecrets } from "../record/redaction.ts";
import type { AccountReviews } from "./account-reviews.ts";
import type { AuditEntry, AuditLog } from "./audit-log.ts";
import { type ApiCaller, nameOf, tokenCaller } from "./caller.ts";
import { type AskedOperation, operationOf } from "./operation.ts";
import { reasonHeader, reasonLimit } from "./reason.ts";

/** Dead letters of one change that the log names, and whose functions it names. */
const mostNamed = 20;
/** Characters of a change's body that the log shows. */
const askedLimit = 2_000;

interface GateParts {
  /** The data folder's token. */
  readonly token: string;
  /** Reviews accounts of the cluster. Absent: only the data folder's token counts. */
  readonly accounts?: AccountReviews | undefined;
  readonly audit: AuditLog;
  deadLetters(): Pick<DeadLetterService, "show">;
  /** Returns the function of a dead letter that another replica has; `undefined` if it is not known. Default: no other replica is asked. */
  functionElsewhere?(letter: string): Promise<string | undefined>;
}

/** Decides who a caller is and whether they may do what they ask, and logs each change. */
export class Gate {
  private readonly parts: GateParts;

  constructor(parts: GateParts) {
    this.parts = parts;
  }

  /** Requires a token: the data folder's, or that of an account which has the right. */
  readonly admit: MiddlewareHandler = async (c, next) => {
    await this.pass(c, next, await this.callerOf(c));
  };

  /**
   * Returns who sends a request, by its Authorization header.
   * @throws WatchfireError WF_OBSERVE_TOKEN, WF_CONTROL_TOKEN, WF_CONTROL_REVIEW
   */
  async callerOf(c: Context): Promise<ApiCaller> {
    try {
      return await this.identify(c.req.header("authorization"));
    } catch (error) {
      this.refuse(c, error);
      throw error;
    }
  }

  /** Returns whose token an Authorization header has. Throws as `callerOf` does. */
  async identify(header: string | undefined): Promise<ApiCaller> {
    const { token, accounts } = this.parts;
    if (bears(header, token)) return tokenCaller;
    const [, other] = /^Bearer +(\S+)$/i.exec(header ?? "") ?? [];
    if (accounts && other !== undefined) return accounts.callerOf(other);
    throw new WatchfireError("WF_OBSERVE_TOKEN", {
      what: `the request has ${header === undefined ? "no" : "another"} token`,
    });
  }

  /** Whether a caller may change functions: one, or all. The error says what is missing. */
  async update(caller: ApiCaller, name: string | undefined): Promise<WatchfireError | undefined> {
    const { accounts } = this.parts;
    if (caller.kind === "token" || !accounts || (await accounts.may(caller, "update", name))) return undefined;
    return accounts.refusal(caller, "update", name, "a change");
  }

  /**
   * Lets a caller's request through if they may do what it asks, and logs it if it is a change.
   * @param session the number of the console's session
   * @throws WatchfireError WF_CONTROL_FORBIDDEN, WF_CONTROL_REVIEW
   */
  async pass(c: Context, next: Next, caller: ApiCaller, session?: number): Promise<void> {
    const operation = await operationOf({
      method: c.req.method,
      path: c.req.path.replace(/^\/api(?=\/)/, ""),
      query: c.req.query(),
      body: () => c.req.json().catch(() => undefined),
    });
    const who = { who: nameOf(caller), ...(session !== undefined && { session }) };
    let functions: readonly string[] | undefined;
    try {
      functions = await this.assertMay(caller, operation);
    } catch (error) {
      this.refuse(c, error, { ...who, ...targetOf(operation) });
      throw error;
    }
    if (caller.kind === "account") c.set("redact", withoutSecrets);
    if (operation.action === undefined || operation.isProgress) return next();
    functions ??= operation.letters && (await this.functionsOf(operation.letters.slice(0, mostNamed)).catch(() => []));
    await next();
    this.parts.audit.record({
      ...who,
      verb: operation.action,
      ...targetOf(operation),
      ...(functions && { functions }),
      ...(operation.letters === undefined && { asked: await askedOf(c) }),
      ...reasonOf(c),
      result: resultOf(c),
      from: fromOf(c),
    });
  }

  /** Logs a change that is refused. Reads are not logged. */
  refuse(c: Context, why: unknown, entry: Partial<AuditEntry> = {}): void {
    if (c.req.method === "GET" || c.req.method === "HEAD") return;
    const verb = clean(c.req.path.split("/").at(-1) ?? "").slice(0, 100);
    const said = why instanceof WatchfireError ? why.code : String(why);
    this.parts.audit.refused({ who: "unknown", verb, ...entry, ...reasonOf(c), from: fromOf(c) }, said);
  }

  /** Returns the functions of the dead letters, if it had to look at them. */
  private async assertMay(
    caller: ApiCaller,
    { right, name, letters, action }: AskedOperation,
  ): Promise<readonly string[] | undefined> {
    const { accounts } = this.parts;
    if (caller.kind === "token" || !accounts) return undefined;
    if (await accounts.may(caller, right, name)) return undefined;
    const needing = action ?? (name === undefined ? "a read of all functions" : "the read");
    if (letters === undefined || letters.length === 0) throw accounts.refusal(caller, right, name, needing);
    // The caller does not learn which letters there are, and of which functions, unless they may see those functions.
    const hidden = "a dead letter that does not exist, or is of a function that you may not see,";
    const functions = await this.functionsOf(letters).catch(() => undefined);
    if (functions === undefined) throw accounts.refusal(caller, right, undefined, hidden);
    for (const each of functions) {
      if (await accounts.may(caller, right, each)) continue;
      if (await accounts.may(caller, "get", each)) throw accounts.refusal(caller, right, each, needing);
      throw accounts.refusal(caller, right, undefined, hidden);
    }
    return functions;
  }

  private async functionsOf(letters: readonly string[]): Promise<readonly string[]> {
    const names = new Set<string>();
    for (const id of new Set(letters)) names.add(await this.functionOf(id));
    return [...names];
  }

  private async functionOf(letter: string): Promise<string> {
    try {
      return (await this.parts.deadLetters().show(letter)).function;
    } catch (error) {
      const name = await this.parts.functionElsewhere?.(letter);
      if (name === undefined) throw error;
      return name;
    }
  }
}

/** The body of a change, as far as the log has room for it. */
async function askedOf(c: Context): Promise<unknown> {
  const text = await c.req.text().catch(() => "");
  // Objects that are applied may have secrets.
  const isObject = c.req.path.endsWith("/apply");
  return text.length > askedLimit || isObject ? `${text.length} characters` : await c.req.json().catch(() => undefined);
}

function targetOf({ name, letters }: AskedOperation): Partial<AuditEntry> {
  if (letters) return { letters: { count: letters.length, ids: letters.slice(0, mostNamed) } };
  return name === undefined ? {} : { function: clean(name).slice(0, 253) };
}

/** The failure's code, or `done`. */
function resultOf({ error, res }: Context): string {
  if (res.status < 400) return "done";
  return error instanceof WatchfireError ? error.code : `status ${res.status}`;
}

function reasonOf(c: Context): { readonly reason?: string } {
  const sent = c.req.header(reasonHeader);
  if (sent === undefined) return {};
  let reason = sent;
  try {
    reason = decodeURIComponent(sent);
  } catch {
    // Sent as it is.
  }
  return { reason: cut(clean(reason), reasonLimit) };
}

/** The peer's address and the program that it names. */
export const fromOf = (c: Context): string =>
  `${getConnInfo(c).remote.address ?? ""} ${clean(c.req.header("user-agent") ?? "").slice(0, 120)}`.trim();
