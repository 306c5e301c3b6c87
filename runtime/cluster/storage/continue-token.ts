import { badRequest } from "../api/status.ts";

/** The position at which a paged list continues. */
interface ContinueToken {
  /** The snapshot's revision; -1 continues with the current state. */
  revision: number;
  /** The first key that the previous pages did not contain. */
  start: string;
}

const version = "meta.k8s.io/v1";

export function encodeContinue({ revision, start }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: version, rv: revision, start })).toString("base64url");
}

/** Throws a 400 for anything that `encodeContinue` did not make. */
export function decodeContinue(token: string): ContinueToken {
  let value: { v?: unknown; rv?: unknown; start?: unknown };
  try {
    value = JSON.parse(Buffer.from(token, "base64url").toString()) as typeof value;
  } catch {
    throw badRequest("invalid continue token: continue key is not valid: not a token of this server");
  }
  const { v, rv, start } = value ?? {};
  if (v !== version || typeof rv !== "number" || typeof start !== "string" || !Number.isSafeInteger(rv) || rv < -1)
    throw badRequest(
      "invalid continue token: continue key is not valid: server does not recognize this encoded version",
    );
  return { revision: rv, start };
}
