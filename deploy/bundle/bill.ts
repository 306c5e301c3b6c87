import { randomUUID } from "node:crypto";

/** A component of a shipped artifact. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly licence: string;
  /** Such as `pkg:npm/zod@4.6.7`. */
  readonly purl: string;
  /** CPE by which vulnerability lists know it, if its purl does not suffice. */
  readonly cpe?: string;
}

/** Returns the purl of an npm package. */
export const npmPurl = (name: string, version: string): string => `pkg:npm/${name.replace("@", "%40")}@${version}`;

/** Returns a bill of materials in CycloneDX 1.5. */
export function bill(
  what: { readonly name: string; readonly version: string },
  components: readonly Component[],
): object {
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    serialNumber: `urn:uuid:${randomUUID()}`,
    version: 1,
    metadata: { component: { type: "container", "bom-ref": what.name, ...what } },
    components: components.map(({ licence, ...component }) => ({
      type: "library",
      "bom-ref": component.purl,
      ...component,
      licenses: [{ expression: licence }],
    })),
  };
}
