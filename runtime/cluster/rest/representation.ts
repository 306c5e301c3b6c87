import type { KubeObject } from "../api/object.ts";
import { encodeJson } from "../exact-json.ts";
import { present, type ResourceType, servedVersion } from "../kinds/resource-type.ts";
import type { Revision } from "../storage/revision.ts";
import { columnDefinitions, metadataOnly, tableRow } from "./table.ts";

/** The forms in which a client may request objects. */
export type Form = "object" | "metadata" | "table";

/** Encodes objects of one resource in the form that the client asked for. */
export class Representation {
  readonly type: ResourceType;
  readonly form: Form;
  private readonly now: () => number;
  private readonly include: string;
  private readonly render: (object: KubeObject) => unknown;
  private readonly id: string;
  /** Length in bytes of the object's beginning that states its type. */
  private readonly typeBytes: number;
  private described = false;

  constructor(type: ResourceType, form: Form, now: () => number, include = "Metadata") {
    this.type = type;
    this.form = form;
    this.now = now;
    this.include = include;
    this.id = `${servedVersion(type)}${form === "metadata" ? ";metadata" : ""}`;
    this.render = form === "metadata" ? metadataOnly : (object) => typeFirst(present(type, object));
    this.typeBytes = Buffer.byteLength(
      `{"kind":${JSON.stringify(type.kind)},"apiVersion":${JSON.stringify(servedVersion(type))},`,
    );
  }

  /** Encodes one object. Tables are rebuilt each time, because they show ages. */
  bytes(revision: Revision): Buffer {
    if (this.form !== "table") return revision.bytes(this.id, this.render);
    return Buffer.from(encodeJson(this.table([revision.object], { resourceVersion: String(revision.revision) })));
  }

  /** Converts one object that is not stored, such as the outcome of a dry run. */
  one(object: KubeObject): unknown {
    if (this.form !== "table") return this.render(object);
    return this.table([object], { resourceVersion: object.metadata.resourceVersion ?? "" });
  }

  /** Encodes a list as pieces to send one after the other. */
  *list(items: readonly Revision[], metadata: Record<string, unknown>): Generator<Buffer> {
    if (this.form === "table") {
      yield Buffer.from(
        encodeJson(
          this.table(
            items.map(({ object }) => object),
            metadata,
          ),
        ),
      );
      return;
    }
    const [kind, apiVersion] =
      this.form === "metadata"
        ? ["PartialObjectMetadataList", "meta.k8s.io/v1"]
        : [this.type.listKind, servedVersion(this.type)];
    yield Buffer.from(
      `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`,
    );
    let first = true;
    for (const item of items) {
      if (!first) yield comma;
      first = false;
      yield* this.item(item);
    }
    yield end;
  }

  /** Items of a built-in kind omit their type, because the list states it; those of custom resources include it. */
  private *item(item: Revision): Generator<Buffer> {
    const bytes = this.bytes(item);
    if (this.form === "metadata" || this.type.custom) yield bytes;
    else {
      yield open;
      yield bytes.subarray(this.typeBytes);
    }
  }

  /** The object of a bookmark: a resourceVersion and no other content. */
  bookmark(revision: number, annotations?: Record<string, string>): unknown {
    const metadata = { resourceVersion: String(revision), ...(annotations ? { annotations } : {}) };
    if (this.form === "object") return { kind: this.type.kind, apiVersion: servedVersion(this.type), metadata };
    if (this.form === "metadata") return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
    const object: KubeObject = { kind: this.type.kind, apiVersion: servedVersion(this.type), metadata };
    return this.table([object], { resourceVersion: String(revision) });
  }

  /** In a watch, only the first table describes its columns. */
  private table(objects: readonly KubeObject[], metadata: Record<string, unknown>): unknown {
    const describe = !this.described;
    this.described = true;
    const now = this.now();
    return {
      kind: "Table",
      apiVersion: "meta.k8s.io/v1",
      metadata,
      columnDefinitions: describe ? columnDefinitions(this.type) : [],
      rows: objects.map((object) => tableRow(this.type, object, now, this.include)),
    };
  }
}

/** Puts the type first, as the real server does, so that an item can be cut out of the object's bytes. */
function typeFirst({ kind, apiVersion, metadata, ...rest }: KubeObject): KubeObject {
  return { kind, apiVersion, metadata, ...rest };
}

const open = Buffer.from("{");
const comma = Buffer.from(",");
const end = Buffer.from("]}\n");
