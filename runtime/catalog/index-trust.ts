import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import type { ConfigMap } from "./config-map.ts";
import { contentOf, signatureOf } from "./deployed-index.ts";
import { placeOf } from "./packed-function.ts";
import type { TrustedKeys } from "./signature.ts";

const seenSchema = z.object({ audience: z.string(), serial: z.int().min(0) });

/** Returns the audience of an index's signature: one runtime, so that no index is accepted by another. */
export const audienceOf = (namespace: string, account: string): string => `${namespace}/${account}`;

interface IndexTrustOptions {
  readonly keys: TrustedKeys;
  readonly namespace: string;
  readonly account: string;
  /** The data folder, where the newest serial is kept over a restart. */
  readonly data: string;
}

/**
 * Verifies an index: a trusted key must have signed it for this runtime, and it must not be older than one that was accepted
 * before. An old signed index names code that was replaced for a reason.
 */
export class IndexTrust {
  private readonly keys: TrustedKeys;
  private readonly audience: string;
  private readonly folder: string;
  private newest: number;

  /** @throws WatchfireError WF_DEPLOYED_SERIAL */
  constructor({ keys, namespace, account, data }: IndexTrustOptions) {
    this.keys = keys;
    this.audience = audienceOf(namespace, account);
    this.folder = data;
    this.newest = this.kept();
  }

  /** Whether a signed index was ever accepted. If so, an absent index is suspicious. */
  get hasSeen(): boolean {
    return this.newest > 0;
  }

  /** @throws WatchfireError WF_DEPLOYED_UNTRUSTED, WF_DEPLOYED_REPLAYED */
  assert(index: ConfigMap): void {
    const serial = this.serialOf(index);
    if (serial >= this.newest) return;
    throw new WatchfireError("WF_DEPLOYED_REPLAYED", {
      what: `the index was signed on ${day(serial)}, and one of ${day(this.newest)} ran here`,
      place: { file: placeOf(index.metadata.name) },
    });
  }

  /** Records an accepted index. */
  took(index: ConfigMap): void {
    const serial = this.serialOf(index);
    if (serial <= this.newest) return;
    this.newest = serial;
    makeFolder(this.folder, 0o700);
    const file = fileIn(this.folder);
    writeFileSync(`${file}.new`, `${JSON.stringify({ audience: this.audience, serial })}\n`, {
      mode: 0o600,
      flush: true,
    });
    renameSync(`${file}.new`, file);
  }

  private serialOf(index: ConfigMap): number {
    const { audience } = this;
    const found = this.keys.verify(signatureOf(index), {
      purpose: "deployed-functions",
      audience,
      content: contentOf(index),
    });
    if (typeof found === "number") return found;
    throw new WatchfireError("WF_DEPLOYED_UNTRUSTED", {
      what: found.why,
      place: { file: placeOf(index.metadata.name) },
    });
  }

  /** The serial in another runtime's folder is ignored. */
  private kept(): number {
    const file = fileIn(this.folder);
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
      throw lost(file, error);
    }
    try {
      const { audience, serial } = seenSchema.parse(JSON.parse(text));
      return audience === this.audience ? serial : 0;
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
