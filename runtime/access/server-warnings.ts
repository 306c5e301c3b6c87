import { clean, cut } from "../base/wording.ts";

/** A value of the `Warning` header: its code, an agent and a quoted text (RFC 7234, section 5.5). API servers send 299 alone. */
const warning = /299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** Number of texts that are remembered. Beyond it, further texts are not reported. */
const mostTexts = 1000;

/** Characters of a text, as an API server cuts it (`apiserver` pkg/endpoints/filters/warning.go, `truncateItemRunes`). */
const longestText = 256;

/** Reports the warnings in an API server's answers to a function's calls, each text once. */
export class ServerWarnings {
  private readonly warned: (functionName: string, text: string) => void;
  private readonly seen = new Set<string>();

  constructor(warned: (functionName: string, text: string) => void) {
    this.warned = warned;
  }

  /** Reads the `Warning` header of one answer. */
  read(functionName: string, header: string | string[] | undefined): void {
    if (header === undefined) return;
    for (const [, quoted = ""] of [header].flat().join(", ").matchAll(warning)) {
      const text = cut(clean(quoted.replace(/\\(.)/g, "$1")), longestText);
      if (this.seen.has(text) || this.seen.size >= mostTexts) continue;
      this.seen.add(text);
      this.warned(functionName, text);
    }
  }
}
