import { NamedFields } from "./named-fields.ts";

/** The object before a change, as far as it is stored. The fields that conditions name are parsed on the first read. */
export class PreviousObject {
  /** The previous object of an Added. */
  static readonly none = new PreviousObject(undefined, new NamedFields([]));
  private readonly body: Buffer | undefined;
  private readonly fields: NamedFields;
  private parsed: unknown;

  /** @param fields the fields that conditions name */
  constructor(body: Buffer | undefined, fields: NamedFields) {
    this.body = body;
    this.fields = fields;
  }

  get value(): unknown {
    if (!this.body) return null;
    this.parsed ??= this.fields.read({ body: this.body });
    return this.parsed;
  }

  /** Whether a condition without a value on it may have one on the whole object. */
  get isPartial(): boolean {
    return this.body !== undefined && isMetadataAlone(JSON.parse(this.body.toString()));
  }
}

const metadataMembers: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** Whether an object may be one that `lastBody: Metadata` stores. */
export const isMetadataAlone = (object: unknown): boolean =>
  object !== null && typeof object === "object" && Object.keys(object).every((name) => metadataMembers.has(name));
