import { warningsIn } from "../kube/server-warning.ts";

/** Number of texts that are remembered. Beyond it, further texts are not reported. */
const mostTexts = 1000;

/** Reports the warnings in an API server's answers to functions' calls: each text once, with the function that received it first. */
export class ServerWarnings {
  private readonly warned: (functionName: string, text: string) => void;
  private readonly seen = new Set<string>();

  constructor(warned: (functionName: string, text: string) => void) {
    this.warned = warned;
  }

  /** Reads the `Warning` header of one answer. */
  read(functionName: string, header: string | string[] | undefined): void {
    for (const text of warningsIn(header)) {
      if (this.seen.has(text) || this.seen.size >= mostTexts) continue;
      this.seen.add(text);
      this.warned(functionName, text);
    }
  }
}
