import { Readable } from "node:stream";
import type { Dice } from "../random.ts";
import type { Cluster } from "./cluster.ts";
import type { Collection } from "./collection.ts";
import { expired } from "./status.ts";

/** One open watch on the server's side. It advances when the world says so. */
export class WatchStream {
  readonly body = new Readable({ read: () => {} });
  private readonly cluster: Cluster;
  private readonly collection: Collection;
  /** The resourceVersion up to which everything was sent. */
  private at: number;
  /**
   * Lines that a WatchList has still to send of its initial state. The bookmark that ends the state is the last one.
   */
  private readonly initial: object[];
  private ended = false;

  constructor(cluster: Cluster, collection: Collection, from: number | "initial") {
    this.cluster = cluster;
    this.collection = collection;
    this.at = from === "initial" ? cluster.now : from;
    this.body.on("error", () => {});
    this.initial =
      from === "initial"
        ? [
            ...collection.items(this.at).map((object) => ({ type: "ADDED", object })),
            this.bookmark(this.at, { annotations: { "k8s.io/initial-events-end": "true" } }),
          ]
        : [];
  }

  get isOpen(): boolean {
    return !this.ended && !this.body.destroyed;
  }

  /** Makes a random event happen to the stream. */
  step(dice: Dice, faults: boolean): void {
    const roll = dice.next();
    if (faults && roll < 0.04) this.end();
    else if (faults && roll < 0.07) this.reset();
    else if (roll < 0.2) this.sendBookmark();
    else this.send(1 + dice.below(4));
  }

  /** Sends everything there is. */
  flush(): void {
    this.send(Number.POSITIVE_INFINITY);
    this.sendBookmark();
  }

  end(): void {
    this.ended = true;
    this.body.push(null);
  }

  reset(): void {
    this.ended = true;
    this.body.destroy(Object.assign(new Error("the connection was reset"), { code: "ECONNRESET" }));
  }

  private send(limit: number): void {
    if (!this.isOpen) return;
    if (this.initial.length > 0) {
      this.write(this.initial.splice(0, limit));
      return;
    }
    if (this.at < this.cluster.compacted) {
      this.write([{ type: "ERROR", object: expired("The resourceVersion for the provided watch is too old.") }]);
      this.end();
      return;
    }
    const { lines, upTo } = this.collection.changes(this.at, limit);
    this.write(lines);
    this.at = Math.max(this.at, upTo);
  }

  private sendBookmark(): void {
    if (!this.isOpen || this.initial.length > 0) return;
    const { lines } = this.collection.changes(this.at, 1);
    if (lines.length === 0) this.at = Math.max(this.at, this.cluster.now);
    this.write([this.bookmark(this.at)]);
  }

  private bookmark(rv: number, more: object = {}): object {
    const metadata = { resourceVersion: String(rv), ...more };
    return { type: "BOOKMARK", object: { apiVersion: "v1", kind: this.collection.kind, metadata } };
  }

  private write(lines: readonly object[]): void {
    if (lines.length > 0) this.body.push(Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
  }
}
