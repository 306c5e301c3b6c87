import { NamedFields } from "./named-fields.ts";

/** The object before a change, as far as it is kept. What conditions name of it is parsed when the first of them does. */
export class PreviousObject {
  /** An Added has none. */
  static readonly none = new PreviousObject(undefined, new NamedFields([]));
  private readonly body: Buffer | undefined;
  private readonly fields: NamedFields;
  private parsed: unknown;

  /** @param fields what conditions name of it */
  constructor(body: Buffer | undefined, fields: NamedFields) {
    this.body = body;
    this.fields = fields;
  }

  get value(): unknown {
    if (!this.body) return null;
    this.parsed ??= this.fields.read({ body: this.body });
    return this.parsed;
  }

  /** Whether a condition that has no value on it may have one on the whole object. */
  get isPartial(): boolean {
    return this.body !== undefined && isMetadataAlone(JSON.parse(this.body.toString()));
  }
}

const metadataMembers: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** Whether it may be what `lastBody: Metadata` keeps of an object. */
export const isMetadataAlone = (object: unknown): boolean =>
  object !== null && typeof object === "object" && Object.keys(object).every((name) => metadataMembers.has(name));
