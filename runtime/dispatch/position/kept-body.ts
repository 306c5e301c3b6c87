import { RawFields } from "../filter/raw-fields.ts";

/** How much of a body a view keeps. */
export type KeptBody = "Full" | "Metadata" | "None";

/** What is kept of a body. */
export function keptOf(kept: KeptBody, body: Buffer): Buffer | undefined {
  return kept === "Full" ? body : kept === "Metadata" ? metadataOf(body) : undefined;
}

const metadataFields = new RawFields([["apiVersion"], ["kind"], ["metadata"]]);

/** The body without what is not metadata: as its bytes have it, and where they cannot tell, as it is parsed. */
function metadataOf(body: Buffer): Buffer {
  const excerpt = metadataFields.excerpt({ body });
  if (excerpt !== undefined) return Buffer.from(excerpt);
  const { apiVersion, kind, metadata } = JSON.parse(body.toString());
  return Buffer.from(JSON.stringify({ apiVersion, kind, metadata }));
}
