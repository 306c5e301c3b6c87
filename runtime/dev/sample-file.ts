import { readFileSync } from "node:fs";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { lowerFirst, systemReason } from "../base/wording.ts";
import { type ManifestDocument, readDocuments } from "../document/document.ts";
import { type Path, showPath } from "../document/path.ts";
import { decodeUtf8 } from "../document/utf8.ts";

const objectSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().default("default"),
  }),
});

/** An object that a file declares, and where. */
export interface SampleObject {
  readonly object: z.infer<typeof objectSchema>;
  /** Creates a fault at one of its fields, or at the nearest existing parent. */
  fault(path: Path, what: string, hint?: string): WatchfireError;
}

/** Reads the objects of a YAML file, in order. @throws WatchfireError WF_DEV_SAMPLE, with the place */
export const readSamples = (file: string): SampleObject[] => readObjects(textOf(file), file);

/** Reads the objects of a YAML text, in order. `file`: its name in faults. @throws WatchfireError WF_DEV_SAMPLE, with the place */
export function readObjects(text: string, file: string): SampleObject[] {
  return readDocuments(text, file).map((document) => {
    const [broken] = document.faults;
    if (broken) throw new WatchfireError("WF_DEV_SAMPLE", broken.detail);
    const fault: SampleObject["fault"] = (path, what, hint) =>
      new WatchfireError("WF_DEV_SAMPLE", {
        what,
        place: document.place(path),
        path: showPath(path),
        ...(hint !== undefined && { hint }),
      });
    const read = objectSchema.safeParse(document.value);
    if (read.success) return { object: read.data, fault };
    const [issue] = read.error.issues;
    const what = lowerFirst(issue?.message ?? "it is not an object").replace(/^invalid input: /, "");
    throw fault(issue?.path ?? [], what);
  });
}

/** Whether a file declares only objects of this kind; for a file with errors, whether it seems to. */
export function declaresOnly(file: string, kind: string): boolean {
  let text: string;
  try {
    text = textOf(file);
  } catch {
    return false; // it is not text
  }
  const saysKind = new RegExp(`^kind: *["']?${kind}\\b`, "m").test(text);
  const isOfKind = ({ value, faults }: ManifestDocument) =>
    faults.length > 0 ? saysKind : (value as { kind?: unknown }).kind === kind;
  return readDocuments(text, file).every(isOfKind);
}

function textOf(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    throw new WatchfireError("WF_DEV_SAMPLE", { what: systemReason(cause), place: { file }, cause });
  }
  return decodeUtf8(bytes, file, "WF_DEV_SAMPLE");
}
