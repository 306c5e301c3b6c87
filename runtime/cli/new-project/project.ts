import { copyFileSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { material } from "./material.ts";
import { templateFiles } from "./template-files.ts";
import type { Template } from "./templates.ts";
import { FolderError, makeFolder, ProjectError, writeFiles } from "./write-files.ts";

interface ProjectOptions {
  /** The project's folder: new or empty. */
  readonly folder: string;
  readonly template: Template;
  /** The folder of the packages' tarballs, which are copied into the project. */
  readonly packages: string;
  /** The major version of the machine's Node. */
  readonly nodeMajor: number;
}

/** The oldest Node that the runtime supports. */
const oldestNode = 24;

/** The README's row about `npm run types`. */
const typesRow = /^\| `npm run types` .*\n/m;

const packageNames = ["runtime", "sdk", "cluster"] as const;

/**
 * Writes a project into a folder. Returns the files' paths in it.
 * @throws ProjectError, without having written, if the folder is not empty, its name is no package name, or a tarball is missing
 * @throws FolderError if the system refuses to write
 */
export function writeProject({ folder, template, packages, nodeMajor }: ProjectOptions): string[] {
  const name = basename(resolve(folder));
  if (!/^[a-z0-9][a-z0-9._-]{0,213}$/.test(name)) {
    throw new ProjectError(`${name} is not a name for a package: use small letters, digits and dashes`);
  }
  if (listed(folder).some((each) => each !== ".git"))
    throw new ProjectError(`${folder} is not empty; name another folder`);
  const tarballs = packageNames.map((each) => tarballOf(each, packages));
  // Without a CustomResourceDefinition there are no types to write.
  const own = templateFiles(template);
  const hasTypes = Object.keys(own).some((path) => path.startsWith("types/"));
  const files = {
    ...material.folders.common,
    ...own,
    "package.json": `${JSON.stringify(packageJson({ name, tarballs, nodeMajor, hasTypes }), null, 2)}\n`,
  };
  // npm excludes .gitignore from packages.
  const written = Object.fromEntries(
    Object.entries(files).map(([path, text]) => [
      path.replace(/^_/, "."),
      text.replaceAll("{{name}}", name).replace(typesRow, hasTypes ? "$&" : ""),
    ]),
  );
  writeFiles(folder, written);
  try {
    makeFolder(resolve(folder, "packages"));
    for (const tarball of tarballs) copyFileSync(join(packages, tarball), join(folder, "packages", tarball));
  } catch (cause) {
    throw new FolderError(folder, cause);
  }
  return [...Object.keys(written), ...tarballs.map((tarball) => `packages/${tarball}`)].sort();
}

/** Describes the download size of a newer Node next to an older one. `undefined` if no Node is added. */
export const addedNode = (nodeMajor: number): string | undefined =>
  nodeMajor >= oldestNode
    ? undefined
    : `this Node is ${nodeMajor}, and the runtime needs ${oldestNode}: the project installs node@${material.tools.node}, 190 MB`;

interface PackageOptions extends Pick<ProjectOptions, "nodeMajor"> {
  readonly name: string;
  readonly tarballs: readonly string[];
  readonly hasTypes: boolean;
}

function packageJson({ name, tarballs, nodeMajor, hasTypes }: PackageOptions): object {
  const { node, typescript, vitest } = material.tools;
  const own = packageNames.map((each, index) => [`@watchfire/${each}`, `file:packages/${tarballs[index]}`]);
  return {
    name,
    version: "0.0.0",
    private: true,
    type: "module",
    engines: { node: nodeMajor >= oldestNode ? "^24 || ^26" : ">=20" },
    scripts: {
      dev: "watchfire dev",
      validate: "watchfire validate",
      check: "tsc --noEmit",
      ...(hasTypes && { types: "watchfire types --crd functions" }),
      test: "vitest run && watchfire test",
      build: "watchfire build",
    },
    devDependencies: {
      ...Object.fromEntries(own),
      ...(nodeMajor < oldestNode && { node }),
      typescript,
      vitest,
    },
    allowScripts: { "@watchfire/runtime": true, esbuild: true, "isolated-vm": true, node: true },
  };
}

function tarballOf(name: string, folder: string): string {
  const tarball = `watchfire-${name}-${material.version}.tgz`;
  if (listed(folder).includes(tarball)) return tarball;
  throw new ProjectError(`${folder} has no ${tarball}; in a checkout of Watchfire, \`npm run pack -- DIR\` makes it`);
}

/** Returns the names in a folder. Empty if it does not exist; another file in its place is reported when it is written to. */
function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw new ProjectError(`${folder} cannot be read: ${(error as Error).message}`);
  }
}
