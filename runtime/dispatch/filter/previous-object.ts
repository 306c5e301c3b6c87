/** The object before a change, as far as it is kept. Its body is parsed when a condition first names it. */
export class PreviousObject {
  /** An Added has none. */
  static readonly none = new PreviousObject(undefined);
  private readonly body: Buffer | undefined;
  private parsed: unknown;

  constructor(body: Buffer | undefined) {
    this.body = body;
  }

  get value(): unknown {
    if (!this.body) return null;
    this.parsed ??= JSON.parse(this.body.toString());
    return this.parsed;
  }

  /** Whether a condition that has no value on it may have one on the whole object. */
  get isPartial(): boolean {
    return this.body !== undefined && isMetadataAlone(this.value);
  }
}

const metadataMembers: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** Whether it may be what `lastBody: Metadata` keeps of an object. */
export const isMetadataAlone = (object: unknown): boolean =>
  object !== null && typeof object === "object" && Object.keys(object).every((name) => metadataMembers.has(name));
