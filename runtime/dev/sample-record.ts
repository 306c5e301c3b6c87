import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";

const recordFile = "samples";

/** Which samples an embedded cluster has had: what its user deletes stays deleted. Kept in the data folder, a line for each file. */
export class SampleRecord {
  private readonly folder: string;
  private readonly names: Set<string>;

  /** @param isNew the folder's cluster begins empty, so that no sample is there */
  constructor(folder: string, isNew: boolean) {
    this.folder = folder;
    this.names = new Set(isNew ? [] : read(join(folder, recordFile)));
  }

  has(sample: string): boolean {
    return this.names.has(this.nameOf(sample));
  }

  /** @throws WatchfireError WF_DEV_CLUSTER_FILES */
  add(sample: string): void {
    this.names.add(this.nameOf(sample));
    const file = join(this.folder, recordFile);
    try {
      writeFileSync(file, `${[...this.names].join("\n")}\n`);
    } catch (cause) {
      throw new WatchfireError("WF_DEV_CLUSTER_FILES", { what: systemReason(cause), place: { file }, cause });
    }
  }

  /** A project that is moved whole has had them still. */
  private nameOf(sample: string): string {
    return relative(this.folder, sample);
  }
}

function read(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return []; // none was applied yet
  }
}
