import { readFile } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { systemReason } from "../base/wording.ts";
import { configFault } from "./kubeconfig-file.ts";

/**
 * How often the file is read again, in milliseconds, as in client-go (`token_source.go`). The kubelet rotates a projected token
 * long before it expires.
 */
const rereadMs = 60_000;

/**
 * Bearer token in a file that another program rewrites. The file is read again at most every 60 s, on the monotonic clock, and
 * after the server refused the token. While the file is missing or empty the last good token stays in use; before the first read,
 * that is the token given to the constructor.
 */
export class TokenFile {
  private readonly file: string;
  private readonly clock: Clock;
  private current: string | undefined;
  private readAt = Number.NEGATIVE_INFINITY;
  private reading: Promise<string> | undefined;

  /** @param token used until the file has been read; empty: no token */
  constructor(file: string, clock: Clock, token = "") {
    this.file = file;
    this.clock = clock;
    this.current = token || undefined;
  }

  /** @throws WatchfireError WF_KUBE_CONFIG if no token has been read so far */
  async token(): Promise<string> {
    if (this.current !== undefined && this.clock.monotonic() - this.readAt < rereadMs) return this.current;
    this.reading ??= this.reread().finally(() => {
      this.reading = undefined;
    });
    return this.reading;
  }

  /** Makes the next call read the file, however fresh the token is. */
  forget(): void {
    this.readAt = Number.NEGATIVE_INFINITY;
  }

  private async reread(): Promise<string> {
    try {
      const token = (await readFile(this.file, "utf8")).trim();
      if (token === "") throw new Error("it is empty");
      this.current = token;
    } catch (error) {
      if (this.current === undefined) {
        const what = `the token file cannot be used: ${systemReason(error)}`;
        throw configFault({ what, place: { file: this.file }, cause: error });
      }
    }
    this.readAt = this.clock.monotonic();
    return this.current;
  }
}
