import { z } from "zod";

/** The meaning of a request to the control API, and the right on `functions.watchfire.dev` that it needs. */
export interface AskedOperation {
  readonly right: "get" | "list" | "update";
  /** The function that the request names; `undefined`: any, or those of `letters`. */
  readonly name?: string;
  /** The dead letters that it is about. Their functions are those that the right is needed for. */
  readonly letters?: readonly string[];
  /** Name of a change, such as `pause`; `undefined` for a read. */
  readonly action?: string;
  /** True if it asks for the progress of a change that has begun. */
  readonly isProgress?: boolean;
}

/** A request, as far as it decides about the right. */
interface AskedRequest {
  readonly method: string;
  /** Without `/api`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Reads the body; `undefined` if it is no JSON. */
  readonly body: () => Promise<unknown>;
}

/** Reads that name all functions with a path that could be a function's. */
const ofAll: ReadonlySet<string> = new Set(["runs", "logs"]);

/** Reads whose answer is limited to one function by the query `function`. */
const byQuery: ReadonlySet<string> = new Set(["runs", "dead-letters", "changes"]);

const lettersSchema = z.looseObject({ ids: z.array(z.string().max(200)).max(1000) });
/** The bodies that ask for the progress of a change, by its action. Any other action ignores such a body, and is a change. */
const progressSchemas: Readonly<Record<string, z.ZodType>> = {
  redeliver: z.strictObject({ job: z.string() }),
  record: z.strictObject({ recording: z.string(), wait: z.number().optional() }),
};

/**
 * Returns what a request asks for. A path that is not known needs the right on all functions, so that a new route is never open by
 * mistake.
 */
export async function operationOf({ method, path, query, body }: AskedRequest): Promise<AskedOperation> {
  const [, room = "", second, third] = path.split("/").map(decoded);
  if (method === "GET" || method === "HEAD") return readOf(room, second, third, query.function);
  const action = path.split("/").at(-1) ?? "";
  if (room === "functions" && second !== undefined && third !== undefined) {
    const isProgress = progressSchemas[action]?.safeParse(await body()).success === true;
    return { right: "update", name: second, action, ...(isProgress && { isProgress }) };
  }
  const letters = room === "dead-letters" ? lettersSchema.safeParse(await body()).data?.ids : undefined;
  return { right: "update", action, ...(letters && { letters }) };
}

function readOf(
  room: string,
  second: string | undefined,
  third: string | undefined,
  only: string | undefined,
): AskedOperation {
  if (room === "functions" && second !== undefined && (third !== undefined || !ofAll.has(second))) {
    return { right: "get", name: second };
  }
  if (room === "explain" && second !== undefined) return { right: "get", name: second };
  if (room === "dead-letters" && second !== undefined) return { right: "get", letters: [second] };
  // The received object. `record` shows such objects under the same right.
  if (room === "runs" && third === "event") return { right: "update", ...(only && { name: only }) };
  if (byQuery.has(room) && only) return { right: "get", name: only };
  return { right: "list" };
}

/** Decodes a part of a path as the router does. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
