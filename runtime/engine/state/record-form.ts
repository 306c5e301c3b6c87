import { hash } from "node:crypto";
import { parseExactly } from "../../base/exact-json.ts";
import type { Trigger } from "../../manifest/function.ts";
import { isMetadataAlone } from "../filter/previous-object.ts";
import { RawFields } from "../filter/raw-fields.ts";
import { ObjectSelector } from "./object-selector.ts";

/** How much of a body a view keeps. */
export type KeptBody = "Full" | "Metadata" | "None";

/** The body is the whole object, or its metadata alone; or none is kept. */
const letter = { Full: "F", Metadata: "M", None: "N" } as const;

/** Characters that stand for conditions, and for a rule of keys. */
const tagLength = 6;
/** Stands for no conditions, and for no rule. */
const noTag = "-";

/**
 * The form that a trigger's records are written in: what of the manifest their parts follow from. Its `text` stands with each
 * record, so that a reader under another manifest knows which parts are still true. For example `F,v1,-,-`: whole objects of
 * version v1, no conditions, no `key`.
 *
 * Records of runtimes that noted no form are read as this one's own, but for bodies, which show their version and whether they
 * are whole.
 */
export class RecordForm {
  /** Of a known object's row and its body. */
  readonly text: string;
  /** Of an event's body, which is as it was received. */
  readonly ofEvents: string;
  private readonly kept: KeptBody;
  private readonly rules: Trigger;
  private readonly selector: ObjectSelector;
  private readonly version: string;
  private readonly conditions: string;
  private readonly keys: string;
  /** The forms that were read last, and their parts. */
  private readonly read = new Map<string, readonly string[]>();

  /** @param kept how much of a body the view keeps */
  constructor(rules: Trigger, kept: KeptBody) {
    const { apiVersion, object, matchConditions, key } = rules;
    this.rules = rules;
    this.kept = kept === "Full" ? object : kept;
    this.version = versionOf(apiVersion);
    this.conditions = matchConditions.length === 0 ? noTag : tagOf([apiVersion, object, matchConditions]);
    // Owners are named in metadata, which is the same in each version.
    this.keys = key === undefined ? noTag : tagOf(key.type === "owner" ? [key] : [apiVersion, object, key]);
    this.text = [letter[this.kept], this.version, this.conditions, this.keys].join();
    this.selector = new ObjectSelector(rules);
    this.ofEvents = [letter[object], this.version, this.selector.tag].join();
  }

  get keepsWholeObjects(): boolean {
    return this.kept === "Full";
  }

  get keepsBodies(): boolean {
    return this.kept !== "None";
  }

  /** What is kept of a body that was received. */
  keep(body: Buffer): Buffer | undefined {
    return this.kept === "None" ? undefined : this.kept === "Full" ? body : metadataOf(body, this.rules);
  }

  /** Whether the conditions' answer on record is that of these conditions. */
  answers(form: string | undefined): boolean {
    return form === undefined || form === this.text || this.partsOf(form)[2] === this.conditions;
  }

  /** Whether the keys on record are those of this rule. */
  namesKeys(form: string | undefined): boolean {
    return form === undefined || form === this.text || this.partsOf(form)[3] === this.keys;
  }

  /** Whether fields that were compared then can be compared with those of today: another version may name and count them otherwise. */
  comparesWith(form: string | undefined): boolean {
    return form === undefined || form === this.text || this.partsOf(form)[1] === this.version;
  }

  /** A body on record as one of this form; undefined where it has less, or is of another version. */
  body(body: Buffer, form: string | undefined): Buffer | undefined {
    if (form === this.text || this.kept === "None") return body;
    return this.as(this.kept, body, form);
  }

  /** Whether the trigger selects an object today, as far as it can be told. */
  selectsNow(object: Parameters<ObjectSelector["selects"]>[0]): boolean {
    return this.selector.selects(object);
  }

  /** Whether an event of that form is of an object that the trigger selects today, as far as it can be told. */
  selects(event: Parameters<ObjectSelector["selects"]>[0], form: string | undefined): boolean {
    const [, , tag] = form === undefined || form === this.ofEvents ? [] : this.partsOf(form);
    return tag === undefined || tag === this.selector.tag || this.selector.selects(event);
  }

  /** The body of an event as the trigger's objects are today; undefined where it has less, or is of another version. */
  eventBody(body: Buffer, form: string | undefined): Buffer | undefined {
    if (form === this.ofEvents) return body;
    const [how, version] = form === undefined ? [] : this.partsOf(form);
    if (how === letter[this.rules.object] && version === this.version) return body;
    return this.as(this.rules.object, body, form);
  }

  /** A body, or its metadata where no more of an object is kept. */
  atMost(body: Buffer): Buffer {
    return this.kept === "Metadata" ? metadataOf(body, this.rules) : body;
  }

  /** What is true of an object in each form: its metadata. */
  remains(body: Buffer): Buffer {
    return metadataOf(body, this.rules);
  }

  private as(wanted: "Full" | "Metadata", body: Buffer, form: string | undefined): Buffer | undefined {
    if (wanted === "Metadata") return metadataOf(body, this.rules);
    const [how, version] = form === undefined ? guess(body) : this.partsOf(form);
    return how === letter.Full && version === this.version ? body : undefined;
  }

  private partsOf(form: string): readonly string[] {
    const found = this.read.get(form);
    if (found) return found;
    const parts = form.split(",");
    this.read.set(form, parts);
    return parts;
  }
}

/** Version of an `apiVersion`, without its group. */
const versionOf = (apiVersion: string): string => apiVersion.slice(apiVersion.indexOf("/") + 1);

const tagOf = (rules: unknown): string => hash("sha256", JSON.stringify(rules), "base64url").slice(0, tagLength);

/** The form of a body of which none was noted, as far as the body shows it. */
function guess(body: Buffer): readonly [string, string] {
  const object: unknown = JSON.parse(body.toString());
  const apiVersion = object !== null && typeof object === "object" && "apiVersion" in object ? object.apiVersion : "";
  return [isMetadataAlone(object) ? letter.Metadata : letter.Full, versionOf(String(apiVersion))];
}

const parsed = (body: Buffer) => parseExactly(body.toString()) as Readonly<Record<string, unknown>>;

const metadataField = new RawFields([["metadata"]]);

/** The object with its metadata alone, as its bytes have it, and where they cannot tell, as it is parsed. */
function metadataOf(body: Buffer, { apiVersion, kind }: Pick<Trigger, "apiVersion" | "kind">): Buffer {
  const [raw] = metadataField.of({ body }) ?? [];
  const metadata = raw ? raw.toString() : JSON.stringify(parsed(body).metadata);
  const names = `"apiVersion":${JSON.stringify(apiVersion)},"kind":${JSON.stringify(kind)}`;
  return Buffer.from(metadata ? `{${names},"metadata":${metadata}}` : `{${names}}`);
}
