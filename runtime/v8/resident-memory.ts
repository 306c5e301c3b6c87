import { closeSync, openSync, readFileSync, readSync } from "node:fs";

/** Milliseconds between two checks of a process' memory: while it may run code, and while it may not. */
const pollMs = 20;
const quietPollMs = 500;
/** Bytes of a page in /proc: 4 KiB on every platform with a /proc for which isolated-vm has binaries. */
const pageBytes = 4096;

/** Maximum bytes of the file: seven page counts, the second of which is that of resident pages. */
const statmBytes = 160;

/** Returns a process' resident memory in bytes, or 0 if the platform has no /proc. Then only the container's limit applies. */
export function residentBytes(pid: number | undefined): number {
  try {
    return bytesIn(readFileSync(`/proc/${pid}/statm`, "latin1"));
  } catch {
    return 0;
  }
}

const bytesIn = (statm: string): number => Number(statm.split(" ")[1]) * pageBytes;

/** Measures one process repeatedly. The file stays open, which makes a measurement five times as fast. */
class Looks {
  private readonly path: string;
  private readonly text = Buffer.alloc(statmBytes);
  private file: number | undefined;

  constructor(pid: number | undefined) {
    this.path = `/proc/${pid}/statm`;
  }

  /** If the file cannot be opened now, for example for lack of descriptors, the next read tries again. */
  get bytes(): number {
    try {
      this.file ??= openSync(this.path, "r");
      return bytesIn(this.text.toString("latin1", 0, readSync(this.file, this.text, 0, statmBytes, 0)));
    } catch {
      return 0;
    }
  }

  close(): void {
    if (this.file !== undefined) closeSync(this.file);
    this.file = undefined;
  }
}

/**
 * Checks a process' memory until `stop`. Uses real timers, because a process consumes memory in real time. `exceeded` is called
 * once, with a description.
 */
export class MemoryWatch {
  private timer: NodeJS.Timeout;
  private readonly check: () => void;
  private isOver = false;
  private readonly looks: Looks;
  /** Resident memory in bytes at which `exceeded` is called. */
  cap: number;
  /** The highest value seen, in bytes. */
  peak = 0;

  constructor(pid: number | undefined, cap: number, exceeded: (detail: string) => void) {
    this.cap = cap;
    this.looks = new Looks(pid);
    this.check = () => {
      const { bytes } = this.looks;
      if (bytes > this.peak) this.peak = bytes;
      if (bytes <= this.cap) return;
      this.stop();
      exceeded(`${mebibytes(bytes)} MiB resident, cap ${mebibytes(this.cap)} MiB`);
    };
    this.timer = setInterval(this.check, pollMs).unref();
  }

  /** Checks every 20 ms from now on, or every 500 ms if the process runs no code. */
  look(isOften: boolean): void {
    clearInterval(this.timer);
    if (!this.isOver) this.timer = setInterval(this.check, isOften ? pollMs : quietPollMs).unref();
  }

  stop(): void {
    this.isOver = true;
    clearInterval(this.timer);
    this.looks.close();
  }
}

const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);
