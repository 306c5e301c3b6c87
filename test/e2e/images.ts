import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { namespaces } from "../audit/ledger.ts";
import { writeRecorders } from "../audit/recorders.ts";
import { natsProgram } from "../tools/assets.ts";

const root = join(import.meta.dirname, "../..");

/** The images of the scenarios, all in the node's own store. */
export const images = {
  runtime: { repository: "localhost/watchfire", tag: "e2e" },
  /** The runtime's image with functions copied in. */
  functions: { repository: "localhost/functions", tag: "e2e" },
  /** The same with only the auditor's function. */
  recorder: { repository: "localhost/recorder", tag: "e2e" },
  /** The same with ten copies of the auditor's function, each for a tenth of the objects. */
  recorders: { repository: "localhost/recorders", tag: "e2e" },
  /** The nats-server that NATS_SERVER names. */
  nats: { repository: "localhost/nats", tag: "e2e" },
  /** An image with functions only, for an image volume. */
  volume: { repository: "localhost/functions-volume", tag: "e2e" },
} as const;

const nameOf = ({ repository, tag }: { repository: string; tag: string }) => `${repository}:${tag}`;

/** The auditor's function. */
export const recorderFolder = join(root, "test/audit/functions");

/** All functions: the shipped ones, the auditor's, and some that misbehave. */
export const functionFolders = [join(root, "functions"), recorderFolder, join(root, "test/e2e/functions")];

/** Writes the functions of the image `recorders` into a folder. Returns the folder. */
export async function recordersFolder(): Promise<string> {
  const folder = join(mkdtempSync(join(tmpdir(), "watchfire-recorders-")), "functions");
  await writeRecorders(folder, namespaces, { shares: 10 });
  return folder;
}

/** Builds the images with the project's own Dockerfiles, and loads them into the cluster's node. */
export async function buildImages(tool: string, folder: string): Promise<void> {
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
  const build = (image: keyof typeof images, context: string, ...args: string[]) => {
    run("buildah", "bud", "-q", "--isolation", "chroot", ...args, "-t", nameOf(images[image]), context);
    run(tool, "image", folder, nameOf(images[image]));
  };
  const base = run(tool, "base");
  run("npm", "run", "--silent", "image");
  const deploy = join(root, "deploy");
  build("runtime", deploy, "--build-arg", `BASE_IMAGE=${base}`);

  const baked = [
    "-f",
    join(deploy, "functions.Dockerfile"),
    "--build-arg",
    `WATCHFIRE_IMAGE=${nameOf(images.runtime)}`,
  ];
  const all = gather(functionFolders);
  build("functions", all, ...baked);
  build("volume", all, "-f", join(import.meta.dirname, "volume.Dockerfile"));
  const recorder = gather([recorderFolder]);
  build("recorder", recorder, ...baked);
  const ten = await recordersFolder();
  const recorders = gather([ten]);
  build("recorders", recorders, ...baked);
  const server = mkdtempSync(join(tmpdir(), "watchfire-nats-"));
  if (natsProgram !== undefined) {
    cpSync(natsProgram, join(server, "nats-server"));
    build("nats", server, "-f", join(import.meta.dirname, "nats.Dockerfile"), "--build-arg", `BASE_IMAGE=${base}`);
  }
  for (const context of [all, recorder, recorders, dirname(ten), server]) rmSync(context, { recursive: true });

  const sizeOf = (image: string) => run("buildah", "images", "--format", "{{.Size}}", image);
  process.stdout.write(
    `${nameOf(images.runtime)}: ${sizeOf(nameOf(images.runtime))}, of that ${sizeOf(base)} ${base}\n`,
  );
}

/** A build context: the content of the folders, built into one folder `build`. */
function gather(folders: readonly string[]): string {
  const context = mkdtempSync(join(tmpdir(), "watchfire-context-"));
  const functions = join(context, "functions");
  for (const folder of folders) cpSync(folder, functions, { recursive: true });
  const bin = join(root, "runtime/bin/watchfire.js");
  execFileSync(process.execPath, [bin, "build", "--functions", functions, "--out", join(context, "build")]);
  return context;
}
