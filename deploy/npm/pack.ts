// npm run pack: creates the packages to be published, as tarballs in deploy/.packages/.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { licencesOf } from "../bundle/licences.ts";
import { bundleCreate, bundlePackage, external } from "./bundle.ts";
import { compile, copy } from "./compile.ts";
import { bundledManifest, compiledManifest, createManifest } from "./package-json.ts";
import { compiled, create, licence, output, type Package, runtime } from "./packages.ts";

/** Output of `npm pack --json` for a tarball. */
interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
}

/**
 * Creates every package, and its tarball in `folder`; returns the tarballs' paths. The packages are created within the checkout,
 * where the compiler finds their imports.
 */
export async function packAll(folder: string): Promise<string[]> {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const each of compiled) {
    const to = begin(each, compiledManifest(each));
    compile(each, to);
    rmSync(join(to, "tsconfig.json"));
  }
  const to = begin(runtime, bundledManifest(runtime.folder, external));
  writeFileSync(join(to, "THIRD-PARTY-LICENSES"), licencesOf(await bundlePackage(to)));
  copy(join(runtime.folder, "manifest/function.schema.json"), join(to, "function.schema.json"));
  const begins = begin(create, createManifest(create.folder));
  writeFileSync(join(begins, "THIRD-PARTY-LICENSES"), licencesOf(await bundleCreate(begins, create.folder)));
  return [...compiled, runtime, create].map((each) => tarball(each, folder));
}

const folderOf = ({ name }: Package): string => join(output, name.replace("@watchfire/", ""));

/** Creates the package's folder with the files that every package has. */
function begin(each: Package, manifest: object): string {
  const to = folderOf(each);
  mkdirSync(to, { recursive: true });
  writeFileSync(join(to, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  copy(licence, join(to, "LICENSE"));
  for (const file of ["README.md", "CHANGELOG.md"]) copy(join(each.folder, file), join(to, file));
  return to;
}

function tarball(each: Package, folder: string): string {
  const said = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: folderOf(each),
    encoding: "utf8",
  });
  const [packed] = JSON.parse(said) as Packed[];
  if (!packed) throw new Error(`npm packed nothing of ${each.name}`);
  const kilobytes = (bytes: number) => `${Math.round(bytes / 1024)} KB`;
  const file = join(folder, packed.filename);
  process.stdout.write(`${file}  ${kilobytes(packed.size)} packed, ${kilobytes(packed.unpackedSize)} unpacked\n`);
  return file;
}

if (import.meta.main) await packAll(process.argv[2] ?? output);
