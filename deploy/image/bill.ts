import { bill } from "../bundle/bill.ts";
import { packagesOf } from "../bundle/licences.ts";
import { copied } from "./packages.ts";

/** Returns the image's bill of materials: bundled code, copied packages, and Node. The base image has a separate one. */
export function imageBill(inputs: readonly string[], version: string): object {
  const parts = packagesOf([...inputs, ...copied]).map(({ folder: _, ...component }) => component);
  const node = process.versions.node;
  return bill({ name: "watchfire", version }, [
    ...parts,
    {
      name: "node",
      version: node,
      licence: "MIT",
      purl: `pkg:generic/node@${node}`,
      cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:*:*:*:*`,
    },
  ]);
}
