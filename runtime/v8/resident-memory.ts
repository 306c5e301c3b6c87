import { closeSync, openSync, readFileSync, readSync } from "node:fs";

/** Milliseconds between two looks at a process' memory. */
const pollMs = 20;
/** Bytes of a page in /proc; 4 KiB on every platform that isolated-vm has binaries for with a /proc. */
const pageBytes = 4096;

/** Seven numbers of pages: the second one is that of resident pages. */
const statmBytes = 160;

/** Resident memory of a process in bytes; 0 where the platform has no /proc, and the container's limit has to do. */
export function residentBytes(pid: number | undefined): number {
  try {
    return bytesIn(readFileSync(`/proc/${pid}/statm`, "latin1"));
  } catch {
    return 0;
  }
}

const bytesIn = (statm: string): number => Number(statm.split(" ")[1]) * pageBytes;

/** The same of one process, again and again: the file stays open, which makes a look five times as quick. */
class Looks {
  private readonly path: string;
  private readonly text = Buffer.alloc(statmBytes);
  private file: number | undefined;

  constructor(pid: number | undefined) {
    this.path = `/proc/${pid}/statm`;
  }

  /** A file that cannot be opened now, for want of descriptors say, is opened by a later look. */
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
 * Looks at a process' memory until `stop`. By the machine's own timers: a process eats memory in real time.
 * `exceeded` is called once, with a sentence.
 */
export class MemoryWatch {
  private readonly timer: NodeJS.Timeout;
  private readonly looks: Looks;
  /** Resident memory in bytes at which `exceeded` is called. */
  cap: number;
  /** The highest seen, in bytes. */
  peak = 0;

  constructor(pid: number | undefined, cap: number, exceeded: (detail: string) => void) {
    this.cap = cap;
    this.looks = new Looks(pid);
    this.timer = setInterval(() => {
      const { bytes } = this.looks;
      if (bytes > this.peak) this.peak = bytes;
      if (bytes <= this.cap) return;
      this.stop();
      exceeded(`${mebibytes(bytes)} MiB resident, cap ${mebibytes(this.cap)} MiB`);
    }, pollMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.looks.close();
  }
}

const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);
