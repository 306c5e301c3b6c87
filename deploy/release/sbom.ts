// npm run sbom: writes a bill of materials (CycloneDX) for each package into deploy/.packages/. `npm run image` writes the image's.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compiled, create, output, runtime } from "../npm/packages.ts";

interface Component {
  readonly name: string;
  readonly purl: string;
}

interface Bill {
  readonly metadata: object;
  readonly components: readonly Component[];
}

/**
 * Returns npm's bill of materials for a package and all its dependencies, including bundled ones. A workspace has no dev
 * dependencies.
 */
export function packageBill(name: string): Bill {
  const words = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--workspace", name];
  const { metadata, components, ...rest } = JSON.parse(
    execFileSync("npm", words, { cwd: join(import.meta.dirname, "../.."), encoding: "utf8", stdio: "pipe" }),
  ) as Bill;
  // npm names a workspace after its folder, and the whole after the checkout's.
  const named = components.map((component) => ({ ...component, name: nameIn(component.purl) }));
  return {
    ...rest,
    metadata: { ...metadata, component: named.find((component) => component.name === name) },
    components: named.filter((component) => component.name !== name),
  };
}

/** Returns the package's name from `pkg:npm/%40scope/name@1.0.0`. */
const nameIn = (purl: string): string => decodeURIComponent(purl.slice("pkg:npm/".length, purl.lastIndexOf("@")));

if (import.meta.main) {
  mkdirSync(output, { recursive: true });
  for (const { name } of [...compiled, runtime, create]) {
    const file = join(output, `${name.replace("@", "").replace("/", "-")}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(packageBill(name), null, 2)}\n`);
    process.stdout.write(`${file}\n`);
  }
}
