import type { Readable } from "node:stream";

/** Maximum bytes that are read. Node's report of an error at a program's start takes a few hundred. */
const mostBytes = 4096;
/** Maximum characters of the report that are shown. */
const mostShown = 300;
/** Milliseconds after a process' end within which its output must have arrived. */
const lastWordsMs = 200;

/**
 * Reads the error that an executor reported as it ended, from the beginning of its standard error. The rest is not read: a
 * hostile executor that writes without end blocks itself.
 */
export class StartupError {
  private readonly stderr: Readable | null;
  private text = "";

  constructor(stderr: Readable | null) {
    this.stderr = stderr;
    stderr?.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1", 0, mostBytes - this.text.length);
      if (this.text.length >= mostBytes) stderr.pause();
    });
    stderr?.on("error", () => undefined);
  }

  /** Calls `explained` once, with how the process ended, such as `status 1`, followed by its error if it reported one. */
  explain(ended: string, explained: (detail: string) => void): void {
    const { stderr } = this;
    const explain = () => {
      if (!waits) return;
      waits = false;
      clearTimeout(timer);
      const error = this.error;
      explained(error ? `${ended}: ${error}` : ended);
    };
    let waits = true;
    const timer = setTimeout(explain, lastWordsMs);
    const isRead = !stderr || stderr.closed || stderr.readableEnded || this.text.length >= mostBytes;
    if (isRead) explain();
    else stderr.once("close", explain);
  }

  /** The line that names an error, and the file that could not be accessed. */
  private get error(): string | undefined {
    const printable = this.text.replaceAll(/[^\x20-\x7e\n]/g, "?");
    const [, line] = /^(?:Uncaught )?(\w*Error\b.*)$/m.exec(printable) ?? [];
    const [, resource] = /\bresource: '([^'\n]*)'/.exec(printable) ?? [];
    return line && `${line.trim()}${resource ? ` (${resource})` : ""}`.slice(0, mostShown);
  }
}
