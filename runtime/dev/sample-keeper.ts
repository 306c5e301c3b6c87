import { join, relative } from "node:path";
import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { Discovery } from "../kube/discovery.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Logger } from "../observe/log.ts";
import type { SampleRecord } from "./sample-record.ts";
import { applySamples } from "./samples.ts";

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
 * Applies the functions' samples to the embedded cluster, as functions are added and files corrected. Reports each problem once.
 */
export class SampleKeeper {
  private readonly options: SampleKeeperOptions;
  private readonly logged = new Set<string>();
  private last: Promise<void> = Promise.resolve();

  constructor(options: SampleKeeperOptions) {
    this.options = options;
  }

  /** Applies new samples. One call runs at a time; never rejects. */
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

  private once(text: string, write: (text: string) => void): void {
    if (this.logged.has(text)) return;
    this.logged.add(text);
    write(text);
  }
}
