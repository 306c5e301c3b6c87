import { readFile } from "node:fs/promises";
import type { Clock } from "../clock.ts";

/** Kubelet rotates a projected token long before it expires; client-go re-reads as often (`token_source.go`). */
const rereadMs = 60_000;

/**
 * A bearer token in a file that something else rewrites. It is read again at most every 60 s, on the monotonic clock,
 * and when the server refused it. While the file is missing or empty the last good token stays in use.
 */
export class TokenFile {
  private readonly file: string;
  private readonly clock: Clock;
  private readonly read: (file: string) => Promise<string>;
  private current: string | undefined;
  private readAt = Number.NEGATIVE_INFINITY;
  private reading: Promise<string> | undefined;

  constructor(file: string, clock: Clock, read: (file: string) => Promise<string> = (path) => readFile(path, "utf8")) {
    this.file = file;
    this.clock = clock;
    this.read = read;
  }

  /** The token. Rejects only while none was ever read. */
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
      const token = (await this.read(this.file)).trim();
      if (token === "") throw new Error(`the token file ${this.file} is empty`);
      this.current = token;
    } catch (error) {
      if (this.current === undefined) throw error;
    }
    this.readAt = this.clock.monotonic();
    return this.current;
  }
}
