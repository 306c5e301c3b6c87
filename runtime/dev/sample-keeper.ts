import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { Discovery } from "../kube/discovery.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Logger } from "../observe/log.ts";
import type { SampleRecord } from "./sample-record.ts";
import { applyDefinitions, applySamples, definitionsBeside, unlessGone } from "./samples.ts";

interface SampleKeeperOptions {
  /** Returns the files of the manifests accepted so far. */
  readonly manifests: () => readonly string[];
  readonly transport: KubeTransport;
  readonly record: SampleRecord;
  /** The data folder, as its user names it. */
  readonly data: string;
  readonly log: Logger;
}

/**
 * Applies the functions' definitions and samples to the embedded cluster, as functions are added and files corrected. A definition is
 * applied at the start and whenever its file changes; a sample once. Reports each problem once.
 */
export class SampleKeeper {
  private readonly options: SampleKeeperOptions;
  private readonly logged = new Set<string>();
  /** The text that was last applied of each file of definitions. */
  private readonly definitions = new Map<string, string>();
  private last: Promise<void> = Promise.resolve();

  constructor(options: SampleKeeperOptions) {
    this.options = options;
  }

  /** Applies changed definitions and new samples. One call runs at a time; never rejects. */
  look(): Promise<void> {
    this.last = this.last.then(() => this.apply());
    return this.last;
  }

  private async apply(): Promise<void> {
    const { manifests, transport, record, data, log } = this.options;
    try {
      const discovery = new Discovery(transport, systemClock); // a definition may have been added since the last call
      const warned = (warning: string, sample: string) =>
        this.once(warning, () => log.warn({ sample, warning }, "the API server warns"));
      for (const file of definitionsBeside(manifests())) await this.define(file, discovery, warned);
      const { faults, gone } = await applySamples(manifests(), transport, discovery, record, warned);
      for (const fault of faults) this.once(fault.message, (error) => log.warn({ error }, "sample not applied"));
      for (const sample of gone) {
        const file = relative(process.cwd(), sample);
        const again = `kubectl --kubeconfig ${join(data, "kubeconfig")} apply -f ${file}`;
        const news = `${file} is not applied again, and its object is gone: \`${again}\`, or stop and remove ${data}`;
        this.once(news, (text) => log.info(text));
      }
    } catch (error) {
      const { message } = error instanceof WatchfireError ? error : new Error(String(error));
      this.once(message, (text) => log.warn({ error: text }, "samples not applied"));
    }
  }

  private async define(
    file: string,
    discovery: Discovery,
    warned: (text: string, place: string) => void,
  ): Promise<void> {
    const { transport, log } = this.options;
    const text = unlessGone(() => readFileSync(file, "utf8"));
    const before = this.definitions.get(file);
    if (text === undefined || text === before) return;
    try {
      await applyDefinitions(file, transport, discovery, warned);
      this.definitions.set(file, text);
      if (before !== undefined) log.info({ file: relative(process.cwd(), file) }, "definition applied again");
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      this.once(error.message, (text) => log.warn({ error: text }, "definition not applied"));
    }
  }

  private once(text: string, write: (text: string) => void): void {
    if (this.logged.has(text)) return;
    this.logged.add(text);
    write(text);
  }
}
