// npm run pack: makes the packages that are published, as tarballs in deploy/.packages/.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compile, copy } from "./compile.ts";
import { publishedManifest } from "./package-json.ts";
import { licence, output, type Package, packages } from "./packages.ts";

/** What `npm pack --json` says of a tarball. */
interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
}

/**
 * Makes every package, and its tarball in `folder`; gives the tarballs' paths. The packages themselves are made within the
 * checkout, where the compiler finds what they import.
 */
export function packAll(folder: string): string[] {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return packages.map((each) => pack(each, folder));
}

function pack(each: Package, folder: string): string {
  const to = join(output, each.name.replace("@watchfire/", ""));
  mkdirSync(to, { recursive: true });
  writeFileSync(join(to, "package.json"), `${JSON.stringify(publishedManifest(each.folder), null, 2)}\n`);
  compile(each, to);
  rmSync(join(to, "tsconfig.json"));
  copy(licence, join(to, "LICENSE"));
  if (existsSync(join(each.folder, "README.md"))) copy(join(each.folder, "README.md"), join(to, "README.md"));
  const said = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: to,
    encoding: "utf8",
  });
  const [packed] = JSON.parse(said) as Packed[];
  if (!packed) throw new Error(`npm packed nothing of ${each.name}`);
  const kilobytes = (bytes: number) => `${Math.round(bytes / 1024)} KB`;
  const tarball = join(folder, packed.filename);
  process.stdout.write(`${tarball}  ${kilobytes(packed.size)} packed, ${kilobytes(packed.unpackedSize)} unpacked\n`);
  return tarball;
}

if (import.meta.main) packAll(process.argv[2] ?? output);
