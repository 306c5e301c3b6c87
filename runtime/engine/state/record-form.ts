import { hash } from "node:crypto";
import { parseExactly } from "../../base/exact-json.ts";
import type { Trigger } from "../../manifest/function.ts";
import { isMetadataAlone } from "../filter/named-fields.ts";
import { RawFields } from "../filter/raw-fields.ts";
import { ObjectSelector } from "./object-selector.ts";

/** The part of a body that is stored: the whole object, only its metadata, or nothing. */
export type KeptBody = "Full" | "Metadata" | "None";

/** The letter of each in a form's text. */
const letter = { Full: "F", Metadata: "M", None: "N" } as const;

/** Length of the hash that identifies the conditions, or a key rule, in characters. */
const tagLength = 6;
/** Placeholder for "no conditions" and for "no key rule". */
const noTag = "-";

/**
 * The form of a trigger's records: those parts of the manifest that the records depend on. Its `text` is stored with each record,
 * so that a process with another manifest knows which parts still hold. For example `F,v1,-,-`: whole objects of version v1, no
 * conditions, no `key`.
 *
 * Records of older runtimes have no form. They are read as if they had the current one, except for bodies, which show their own
 * version and whether they are whole.
 */
export class RecordForm {
  /** The form of a known object's row and of its body. */
  readonly text: string;
  /** The form of an event's body, which is stored as received. */
  readonly ofEvents: string;
  private readonly kept: KeptBody;
  private readonly rules: Trigger;
  private readonly selector: ObjectSelector;
  private readonly version: string;
  private readonly conditions: string;
  private readonly keys: string;
  /** Cache of the parts of forms that were read. */
  private readonly read = new Map<string, readonly string[]>();

  /** @param kept the part of a body that is stored */
  constructor(rules: Trigger, kept: KeptBody) {
    const { apiVersion, object, matchConditions, key } = rules;
    this.rules = rules;
    this.kept = kept === "Full" ? object : kept;
    this.version = versionOf(apiVersion);
    this.conditions = matchConditions.length === 0 ? noTag : tagOf([apiVersion, object, matchConditions]);
    // Owners are named in the metadata, which is the same in each version.
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

  /** Returns the part of a received body that is stored; `undefined` if bodies are not stored. */
  keep(body: Buffer): Buffer | undefined {
    return this.kept === "None" ? undefined : this.kept === "Full" ? body : metadataOf(body, this.rules);
  }

  /** Whether a recorded answer is the answer of the current conditions. */
  answers(form: string | undefined): boolean {
    return form === undefined || form === this.text || this.partsOf(form)[2] === this.conditions;
  }

  /** Whether the recorded keys come from the current key rule. */
  namesKeys(form: string | undefined): boolean {
    return form === undefined || form === this.text || this.partsOf(form)[3] === this.keys;
  }

  /**
   * Whether a recorded digest of fields can be compared with one of today: another version may name and count fields differently.
   */
  comparesWith(form: string | undefined): boolean {
    return form === undefined || form === this.text || this.partsOf(form)[1] === this.version;
  }

  /** Converts a stored body to this form; `undefined` if it has less, or is of another version. */
  body(body: Buffer, form: string | undefined): Buffer | undefined {
    if (form === this.text || this.kept === "None") return body;
    return this.as(this.kept, body, form);
  }

  /** Whether the trigger selects an object today, as far as the process can tell by itself. */
  selectsNow(object: Parameters<ObjectSelector["selects"]>[0]): boolean {
    return this.selector.selects(object);
  }

  /** Whether the trigger still selects the object of an event of that form, as far as the process can tell by itself. */
  selects(event: Parameters<ObjectSelector["selects"]>[0], form: string | undefined): boolean {
    const [, , tag] = form === undefined || form === this.ofEvents ? [] : this.partsOf(form);
    return tag === undefined || tag === this.selector.tag || this.selector.selects(event);
  }

  /** Converts an event's stored body to the current form of events; `undefined` if it has less, or is of another version. */
  eventBody(body: Buffer, form: string | undefined): Buffer | undefined {
    if (form === this.ofEvents) return body;
    const [how, version] = form === undefined ? [] : this.partsOf(form);
    if (how === letter[this.rules.object] && version === this.version) return body;
    return this.as(this.rules.object, body, form);
  }

  /** Returns the body, reduced to its metadata if only metadata is stored. */
  atMost(body: Buffer): Buffer {
    return this.kept === "Metadata" ? metadataOf(body, this.rules) : body;
  }

  /** Returns the part of a body that holds in every form: the metadata. */
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

/** The version in an `apiVersion`, without the group. */
const versionOf = (apiVersion: string): string => apiVersion.slice(apiVersion.indexOf("/") + 1);

const tagOf = (rules: unknown): string => hash("sha256", JSON.stringify(rules), "base64url").slice(0, tagLength);

/** Derives the form of a body that was stored without one, as far as the body shows it. */
function guess(body: Buffer): readonly [string, string] {
  const object: unknown = JSON.parse(body.toString());
  const apiVersion = object !== null && typeof object === "object" && "apiVersion" in object ? object.apiVersion : "";
  return [isMetadataAlone(object) ? letter.Metadata : letter.Full, versionOf(String(apiVersion))];
}

const parsed = (body: Buffer) => parseExactly(body.toString()) as Readonly<Record<string, unknown>>;

const metadataField = new RawFields([["metadata"]]);

/** Reduces an object to its metadata. Copies the bytes where the field scanner finds them, and parses the object otherwise. */
function metadataOf(body: Buffer, { apiVersion, kind }: Pick<Trigger, "apiVersion" | "kind">): Buffer {
  const [raw] = metadataField.of({ body }) ?? [];
  const metadata = raw ? raw.toString() : JSON.stringify(parsed(body).metadata);
  const names = `"apiVersion":${JSON.stringify(apiVersion)},"kind":${JSON.stringify(kind)}`;
  return Buffer.from(metadata ? `{${names},"metadata":${metadata}}` : `{${names}}`);
}
