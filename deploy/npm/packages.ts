import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** A package to be published. */
export interface Package {
  readonly name: string;
  /** Absolute path of its sources. */
  readonly folder: string;
}

/** A package that is compiled file by file, because programs import it. */
export interface CompiledPackage extends Package {
  /** Folders and files below it that are not part of the package. */
  readonly without: readonly string[];
  /** Files that its modules read from their own folder. */
  readonly assets: readonly string[];
  /** Unpublished packages of the workspace whose sources become a folder of this package. */
  readonly within: readonly Package[];
}

/** The packages that are compiled file by file, each after its dependencies. */
export const compiled: readonly CompiledPackage[] = [
  { name: "@watchfire/sdk", folder: join(root, "sdk"), without: [], assets: [], within: [] },
  {
    name: "@watchfire/cluster",
    folder: join(root, "runtime/cluster"),
    without: ["openapi/refresh.ts", "protobuf/refresh.ts"],
    assets: ["openapi/kubernetes.json", "protobuf/messages.json"],
    within: [{ name: "@watchfire/cel", folder: join(root, "runtime/cel") }],
  },
];

/** The command line, which is never imported: bundled, as in the image. */
export const runtime: Package = { name: "@watchfire/runtime", folder: join(root, "runtime") };

/** The program that creates a project: one bundled file. */
export const create: Package = { name: "create-watchfire", folder: join(root, "deploy/create") };

/** Output folder of packages and tarballs. */
export const output = join(root, "deploy/.packages");

export const licence = join(root, "LICENSE");
