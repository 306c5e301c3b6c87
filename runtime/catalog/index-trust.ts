import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { signedCanary } from "./canary.ts";
import type { ConfigMap } from "./config-map.ts";
import { contentOf, signatureOf } from "./deployed-index.ts";
import { defaultSet } from "./names.ts";
import { placeOf } from "./packed-function.ts";
import type { Statement, TrustedKeys } from "./signature.ts";

/** The serial at the top is that of the set `default`, as versions without sets wrote it. */
const seenSchema = z.object({
  audience: z.string(),
  serial: z.int().min(0),
  sets: z.record(z.string(), z.int().min(0)).default({}),
});

/** Returns the audience of an index's signature: one set of one runtime, so that no index is accepted in place of another. */
export const audienceOf = (namespace: string, account: string, set: string): string =>
  [namespace, account, ...(set === defaultSet ? [] : [set])].join("/");

interface IndexTrustOptions {
  readonly keys: TrustedKeys;
  readonly namespace: string;
  readonly account: string;
  /** The data folder, where the newest serial is kept over a restart. */
  readonly data: string;
}

/**
 * Verifies indexes: a trusted key must have signed each for this runtime and its set, and it must not be older than one that was
 * accepted before. An old signed index names code that was replaced for a reason.
 */
export class IndexTrust {
  private readonly options: Omit<IndexTrustOptions, "data">;
  private readonly folder: string;
  /** The newest accepted serial of each set. */
  private readonly newest: Map<string, number>;

  /** @throws WatchfireError WF_DEPLOYED_SERIAL */
  constructor({ data, ...options }: IndexTrustOptions) {
    this.options = options;
    this.folder = data;
    this.newest = this.kept();
  }

  /** The sets of which a signed index was ever accepted. If one's index is absent, that is suspicious. */
  get seen(): ReadonlySet<string> {
    return new Set(this.newest.keys());
  }

  /** @throws WatchfireError WF_DEPLOYED_UNTRUSTED, WF_DEPLOYED_REPLAYED */
  assert(index: ConfigMap, set: string): void {
    const serial = this.serialOf(index, set);
    const newest = this.newest.get(set) ?? 0;
    if (serial >= newest) return;
    throw new WatchfireError("WF_DEPLOYED_REPLAYED", {
      what: `the index was signed on ${day(serial)}, and one of ${day(newest)} ran here`,
      place: { file: placeOf(index.metadata.name) },
    });
  }

  /**
   * Verifies the canary of an index that was accepted. It has the index's serial: one that was aborted cannot be put back.
   * @throws WatchfireError WF_DEPLOYED_UNTRUSTED
   */
  assertCanary(index: ConfigMap, set: string): void {
    const { signature, content } = signedCanary(index);
    const found = this.verified(signature, { purpose: "deployed-canary", content }, set);
    const serial = this.serialOf(index, set);
    const why = typeof found === "string" ? found : found === serial ? undefined : "it was signed for another index";
    if (why === undefined) return;
    throw new WatchfireError("WF_DEPLOYED_UNTRUSTED", {
      what: `the canary: ${why}`,
      place: { file: placeOf(index.metadata.name) },
    });
  }

  /** Records an accepted index. */
  took(index: ConfigMap, set: string): void {
    const serial = this.serialOf(index, set);
    if (serial <= (this.newest.get(set) ?? 0)) return;
    this.newest.set(set, serial);
    makeFolder(this.folder, 0o700);
    const file = fileIn(this.folder);
    const { [defaultSet]: first = 0, ...sets } = Object.fromEntries(this.newest);
    const kept = { audience: this.audience, serial: first, ...(Object.keys(sets).length > 0 && { sets }) };
    writeFileSync(`${file}.new`, `${JSON.stringify(kept)}\n`, { mode: 0o600, flush: true });
    renameSync(`${file}.new`, file);
  }

  private get audience(): string {
    return audienceOf(this.options.namespace, this.options.account, defaultSet);
  }

  private serialOf(index: ConfigMap, set: string): number {
    const found = this.verified(signatureOf(index), { purpose: "deployed-functions", content: contentOf(index) }, set);
    if (typeof found === "number") return found;
    throw new WatchfireError("WF_DEPLOYED_UNTRUSTED", { what: found, place: { file: placeOf(index.metadata.name) } });
  }

  /** Returns the serial of a signature, or why it is not trusted. */
  private verified(
    signature: string | undefined,
    statement: Pick<Statement, "purpose" | "content">,
    set: string,
  ): number | string {
    const { keys, namespace, account } = this.options;
    const found = keys.verify(signature, { ...statement, audience: audienceOf(namespace, account, set) });
    return typeof found === "number" ? found : found.why;
  }

  /** The serials in another runtime's folder are ignored. */
  private kept(): Map<string, number> {
    const file = fileIn(this.folder);
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
      throw lost(file, error);
    }
    try {
      const { audience, serial, sets } = seenSchema.parse(JSON.parse(text));
      if (audience !== this.audience) return new Map();
      const all = { ...sets, [defaultSet]: serial };
      return new Map(Object.entries(all).filter(([, each]) => each > 0));
    } catch (error) {
      throw lost(file, error);
    }
  }
}

/** Damaging the file must not make old code acceptable. */
const lost = (file: string, cause: unknown): WatchfireError =>
  new WatchfireError("WF_DEPLOYED_SERIAL", {
    what: "it does not hold the audience and serial of an index",
    place: { file },
    cause,
  });

const fileIn = (folder: string): string => join(folder, "signed-serial");

/** Serials are times; see `nextSerial`. */
const day = (serial: number): string => new Date(Math.min(serial, 8.64e15)).toISOString();
