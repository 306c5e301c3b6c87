// npm run image: prepares deploy/.image/, which deploy/Dockerfile copies into an image: the runtime as JavaScript, the packages
// that cannot be bundled, and Node. Building the image therefore needs no network and runs no commands.
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { licencesOf } from "../bundle/licences.ts";
import { imageBill } from "./bill.ts";
import { bundleImage } from "./bundle.ts";
import { copyPackages } from "./packages.ts";

const context = join(import.meta.dirname, "../.image");
const app = join(context, "app");

if (process.platform !== "linux") throw new Error(`an image is made on Linux; this is ${process.platform}`);
rmSync(context, { recursive: true, force: true });
mkdirSync(app, { recursive: true });

const inputs = await bundleImage(app);
copyPackages(join(app, "node_modules"));
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../runtime/package.json"), "utf8"));
writeFileSync(join(app, "package.json"), JSON.stringify({ name: "watchfire", version, type: "module" }));
writeFileSync(join(app, "THIRD-PARTY-LICENSES"), licencesOf(inputs));
writeFileSync(join(context, "sbom.cdx.json"), `${JSON.stringify(imageBill(inputs, version), null, 2)}\n`);
renameSync(join(app, "bin/watchfire.js"), join(app, "bin/watchfire"));
chmodSync(join(app, "bin/watchfire"), 0o755);
copyFileSync(process.execPath, join(context, "node"));
// The image's user may execute the file but not read it; the kernel then forbids that user's processes to trace or read each
// other.
chmodSync(join(context, "node"), 0o711);

const bytes = globSync("**", { cwd: context, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
process.stdout.write(
  `${context}: ${Math.round(bytes / 2 ** 20)} MiB, Node ${process.versions.node} for linux-${process.arch}\n`,
);
