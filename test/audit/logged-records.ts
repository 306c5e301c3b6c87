import { closeSync, openSync, readSync } from "node:fs";
import type { Delivery, Records } from "./ledger.ts";

/** A line that a handler wrote to a replica's log. */
interface Line {
  readonly time: string;
  readonly msg: string;
  readonly attempt: number;
  readonly fields: Pick<Delivery, "id" | "uid" | "name" | "type" | "synthetic" | "reason"> & {
    readonly resourceVersion: string;
    readonly redelivered: boolean;
  };
}

/** Read state of one replica's log: the offset, and the incomplete last line. */
interface Reading {
  at: number;
  rest: string;
}

/**
 * Deliveries that handlers have logged, of all replicas. Those of one replica are in the order of its log; those of several
 * replicas are ordered by the machine's clock. An object needs at least 100 ms to move between replicas.
 */
export class LoggedRecords implements Records {
  private readonly files: () => readonly string[];
  private readonly readings = new Map<string, Reading>();
  private readonly found: { readonly at: number; readonly delivery: Omit<Delivery, "writtenAt"> }[] = [];

  constructor(files: () => readonly string[]) {
    this.files = files;
  }

  written(): Promise<number> {
    for (const file of this.files()) this.readOn(file);
    return Promise.resolve(this.found.length);
  }

  async deliveries(): Promise<Delivery[]> {
    await this.written();
    const inOrder = this.found.toSorted((a, b) => a.at - b.at);
    return inOrder.map(({ delivery }, index) => ({ ...delivery, writtenAt: index }));
  }

  private readOn(file: string): void {
    const reading = this.readings.get(file) ?? { at: 0, rest: "" };
    this.readings.set(file, reading);
    const opened = openSync(file, "r");
    const chunk = Buffer.alloc(1024 * 1024);
    for (let bytes = 1; bytes > 0; ) {
      bytes = readSync(opened, chunk, 0, chunk.length, reading.at);
      reading.at += bytes;
      const lines = (reading.rest + chunk.toString("latin1", 0, bytes)).split("\n");
      reading.rest = lines.pop() ?? "";
      for (const line of lines) if (line.includes('"msg":"told"')) this.take(JSON.parse(line));
    }
    closeSync(opened);
  }

  private take({ time, attempt, fields }: Line): void {
    const { id, uid, name, type, synthetic, reason, resourceVersion, redelivered } = fields;
    const flagged = redelivered || attempt > 1;
    const delivery = { id, uid, name, type, synthetic, reason, flagged, resourceVersion: Number(resourceVersion) };
    this.found.push({ at: Date.parse(time), delivery });
  }
}
