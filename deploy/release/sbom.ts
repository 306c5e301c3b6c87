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

/** What npm says of a package and all that it depends on; what is bundled into it is among them. A workspace has no dev dependencies. */
export function packageBill(name: string): Bill {
  const words = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--workspace", name];
  const { metadata, components, ...rest } = JSON.parse(
    execFileSync("npm", words, { cwd: join(import.meta.dirname, "../.."), encoding: "utf8", stdio: "pipe" }),
  ) as Bill;
  // npm calls a workspace by its folder, and the whole by the checkout's.
  const named = components.map((component) => ({ ...component, name: nameIn(component.purl) }));
  return {
    ...rest,
    metadata: { ...metadata, component: named.find((component) => component.name === name) },
    components: named.filter((component) => component.name !== name),
  };
}

/** The package's name in `pkg:npm/%40scope/name@1.0.0`. */
const nameIn = (purl: string): string => decodeURIComponent(purl.slice("pkg:npm/".length, purl.lastIndexOf("@")));

if (import.meta.main) {
  mkdirSync(output, { recursive: true });
  for (const { name } of [...compiled, runtime, create]) {
    const file = join(output, `${name.replace("@", "").replace("/", "-")}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(packageBill(name), null, 2)}\n`);
    process.stdout.write(`${file}\n`);
  }
}
