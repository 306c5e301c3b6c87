import type { KubeResponse } from "../../kube/transport.ts";
import { openBrace, skipSpace } from "../scan/white-space.ts";

/** How much is shown of an answer that is not an API server's, in bytes. */
export const excerptLength = 256;

/**
 * How a body begins whose first chunk this is: with an API server's `json`, with white space alone, or `foreign`, as a login
 * page does. The body alone decides, because a proxy may drop the Content-Type or change it.
 */
export function beginningOf(chunk: Buffer): "space" | "json" | "foreign" {
  const at = skipSpace(chunk, 0);
  if (at === chunk.length) return "space";
  return chunk[at] === openBrace ? "json" : "foreign";
}

/** The answer's Content-Type, for people. */
export function typeOf({ headers }: KubeResponse): string {
  return String(headers["content-type"] ?? "no content type");
}

/** Says to people what answered `what`. @param text how the body begins. */
export function foreignAnswer(what: "list" | "watch", response: KubeResponse, text: Buffer | string): string {
  const excerpt = text.toString().slice(0, excerptLength);
  return `the ${what} was answered with ${response.status} ${typeOf(response)}: ${excerpt}`;
}
