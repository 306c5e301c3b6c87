import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** One package to be published. */
export interface Package {
  readonly name: string;
  /** Its sources, absolute. */
  readonly folder: string;
}

/** A package that is compiled file by file, for programs that import it. */
export interface CompiledPackage extends Package {
  /** Folders and files below it that are no part of the package. */
  readonly without: readonly string[];
  /** Files that its modules read from beside them. */
  readonly assets: readonly string[];
  /** Unpublished packages of the workspace whose sources become a folder of this package. */
  readonly within: readonly Package[];
}

/** The packages that are compiled file by file, each after those that it depends on. */
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

/** The command line, which nobody imports: bundled, as in the image. */
export const runtime: Package = { name: "@watchfire/runtime", folder: join(root, "runtime") };

/** What begins a project: one bundled program. */
export const create: Package = { name: "create-watchfire", folder: join(root, "deploy/create") };

/** Where packages and tarballs are made. */
export const output = join(root, "deploy/.packages");

export const licence = join(root, "LICENSE");
