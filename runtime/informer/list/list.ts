import { type ResourceVersion, resourceVersion as toResourceVersion } from "../../base/resource-version.ts";
import { abortable } from "../../kube/abortable.ts";
import { ApiError, readApiError, readLimited } from "../../kube/api-error.ts";
import type { ObjectIdentity } from "../fanout/source-spec.ts";
import type { Change } from "../scan/change.ts";
import { BadList, type ListEnvelope, ListSplitter } from "../scan/list-splitter.ts";
import { ObjectScanner } from "../scan/object-scan.ts";
import { TimeSlice } from "../scan/value-reader.ts";
import { SessionEnded } from "../stream/failure.ts";
import type { InformerRequest } from "../stream/session.ts";
import { beginningOf, excerptLength, foreignAnswer } from "../stream/session.ts";

/** client-go's page size (`pager.go`): a page of Pods is two to five megabytes. */
const pageSize = 500;
/** Time limit of a page, or of an unpaged list of everything, in milliseconds. */
const pageTimeoutMs = 300_000;

interface ListOptions extends InformerRequest {
  /** Its start: consistent by default, or at least as new as a resourceVersion. Never "0", which may go back in time. */
  readonly from: { readonly notOlderThan?: ResourceVersion | undefined };
  /** False: everything in one response, because continue tokens expire faster than pages can be read. */
  readonly paged: boolean;
  readonly signal: AbortSignal;
  congested(): Promise<void> | undefined;
  item(change: Change): void;
  /** Called after the first page if there are more; the first page determines the list's resourceVersion. */
  begun?(resourceVersion: ResourceVersion): void;
}

/** A continue token expired between two pages; the pages already read are useless. */
export class ListExpired extends ApiError {}

/**
 * Lists a collection page by page, delivering each item's text as it arrives. @returns the list's resourceVersion, which is the
 * first page's. Throws ApiError, ListExpired, BadList, OversizeValue, SessionEnded, or what the transport throws.
 */
export async function listCollection(options: ListOptions): Promise<ResourceVersion> {
  const first = await listPage(options, pageQuery(options, ""), false);
  const resourceVersion = toResourceVersion(first.resourceVersion);
  if (resourceVersion === "") {
    throw new SessionEnded({
      type: "unsupported",
      message: "the list has no resourceVersion, so it cannot be watched from",
    });
  }
  if (first.continueToken !== "") options.begun?.(resourceVersion);
  for (let token = first.continueToken; token !== ""; ) {
    const page = await listPage(options, pageQuery(options, token), true);
    token = page.continueToken;
  }
  return resourceVersion;
}

/** Pages after the first carry only the token; the server rejects a token together with a resourceVersion. */
function pageQuery(options: ListOptions, continueToken: string): Record<string, string | undefined> {
  const limit = options.paged ? String(pageSize) : undefined;
  if (continueToken !== "") return { ...options.query, limit, continue: continueToken };
  const { notOlderThan } = options.from;
  const match = notOlderThan === undefined ? undefined : "NotOlderThan";
  return { ...options.query, limit, resourceVersion: notOlderThan, resourceVersionMatch: match };
}

async function listPage(
  options: ListOptions,
  query: Record<string, string | undefined>,
  continued: boolean,
): Promise<ListEnvelope> {
  const { transport, clock, path, headers, identity, signal } = options;
  const response = await transport.request({ method: "GET", path, query, headers, signal, timeoutMs: pageTimeoutMs });
  if (response.status >= 400) {
    const error = await readApiError(response, clock.now());
    throw continued && error.expired ? new ListExpired(error) : error;
  }
  if (response.status !== 200) {
    throw new BadList(foreignAnswer("list", response, await readLimited(response.body, excerptLength)));
  }
  const scanner = new ObjectScanner();
  const splitter = new ListSplitter();
  const turn = new TimeSlice(clock);
  let begun = false;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    const receivedAt = clock.monotonic();
    if (!begun) {
      const beginning = beginningOf(chunk);
      if (beginning === "foreign") throw new BadList(foreignAnswer("list", response, chunk));
      begun = beginning === "json";
    }
    splitter.push(chunk, (bytes, start, end) => {
      if (!scanner.scan(bytes, start, end)) throw new BadList("an item of the list is not JSON");
      options.item(listed({ scanner, identity, bytes, start, end, receivedAt }));
    });
    const congested = options.congested();
    if (congested) await abortable(congested, signal);
    if (turn.isOver) await turn.next();
  }
  const envelope = splitter.end();
  const { apiVersion, kind } = envelope;
  if (identity.refusesList(apiVersion, kind)) {
    const expected = `${identity.apiVersion} ${identity.kind}`;
    throw new SessionEnded({
      type: "unsupported",
      message: `the server answers ${apiVersion} ${kind} to a list of ${expected}`,
    });
  }
  return envelope;
}

/** A scanned item of a list, and the span of its bytes. */
interface ListedItem {
  readonly scanner: ObjectScanner;
  readonly identity: ObjectIdentity;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** Monotonic milliseconds. */
  readonly receivedAt: number;
}

function listed({ scanner, identity, bytes, start, end, receivedAt }: ListedItem): Change {
  const body = identity.bodyOf(scanner, bytes, start, end);
  if (!body) {
    const sent = `${scanner.apiVersion} ${scanner.kind}`;
    throw new SessionEnded({ type: "unsupported", message: `the server lists ${sent} as ${identity.kind}` });
  }
  if (scanner.name === "" || scanner.resourceVersion === "") {
    throw new BadList("an item of the list has no name or no resourceVersion");
  }
  return { type: "Added", meta: scanner.meta(), body, receivedAt };
}
