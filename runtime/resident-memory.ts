import { readFileSync } from "node:fs";

/** Milliseconds between two looks at a process' memory. */
const pollMs = 20;
/** Bytes of a page in /proc; 4 KiB on every platform that isolated-vm has binaries for with a /proc. */
const pageBytes = 4096;

/** Resident memory of a process in bytes; 0 where the platform has no /proc, and the container's limit has to do. */
export function residentBytes(pid: number | undefined): number {
  try {
    const pages = readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1];
    return Number(pages) * pageBytes;
  } catch {
    return 0;
  }
}

/**
 * Looks at a process' memory until `stop`. By the machine's own timers: a process eats memory in real time.
 * `exceeded` is called once, with a sentence.
 */
export class MemoryWatch {
  private readonly timer: NodeJS.Timeout;
  /** Resident memory in bytes at which `exceeded` is called. */
  cap: number;
  /** The highest seen, in bytes. */
  peak = 0;

  constructor(pid: number | undefined, cap: number, exceeded: (detail: string) => void) {
    this.cap = cap;
    this.timer = setInterval(() => {
      const bytes = residentBytes(pid);
      if (bytes > this.peak) this.peak = bytes;
      if (bytes <= this.cap) return;
      this.stop();
      exceeded(`${mebibytes(bytes)} MiB resident, cap ${mebibytes(this.cap)} MiB`);
    }, pollMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }
}

const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);
