import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";

/**
 * Record of the samples that a cluster of the data folder has had, so that objects deleted by the user stay deleted. Kept in the data
 * folder, one line per file.
 */
export class SampleRecord {
  private readonly folder: string;
  private readonly file: string;
  private readonly names: Set<string>;

  /**
   * @param isNew whether the folder's cluster is new, so that no sample exists in it
   * @param name name of the record's file in the folder
   */
  constructor(folder: string, isNew: boolean, name = "samples") {
    this.folder = folder;
    this.file = join(folder, name);
    this.names = new Set(isNew ? [] : read(this.file));
  }

  has(sample: string): boolean {
    return this.names.has(this.nameOf(sample));
  }

  /** @throws WatchfireError WF_DEV_CLUSTER_FILES */
  add(sample: string): void {
    this.names.add(this.nameOf(sample));
    const { file } = this;
    try {
      writeFileSync(file, `${[...this.names].join("\n")}\n`);
    } catch (cause) {
      throw new WatchfireError("WF_DEV_CLUSTER_FILES", { what: systemReason(cause), place: { file }, cause });
    }
  }

  /** Names a sample relative to the project, so that the record stays valid when the whole project is moved. */
  private nameOf(sample: string): string {
    return relative(this.folder, sample);
  }
}

function read(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return []; // no sample has been applied yet
  }
}
