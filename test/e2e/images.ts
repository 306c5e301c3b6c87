import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The images that the scenarios use, all in the node's own store. */
export const images = {
  runtime: { repository: "localhost/watchfire", tag: "e2e" },
  /** FROM the runtime's, with functions copied in. */
  functions: { repository: "localhost/functions", tag: "e2e" },
  /** Functions alone, for an image volume. */
  volume: { repository: "localhost/functions-volume", tag: "e2e" },
} as const;

const nameOf = ({ repository, tag }: { repository: string; tag: string }) => `${repository}:${tag}`;

/** The functions that are baked in: those that ship, the auditor's, and some that misbehave. */
export const functionFolders = ["functions", "test/audit/functions", "test/e2e/functions"].map((each) =>
  join(root, each),
);

/** Makes the images by the project's own Dockerfiles and hands them to the cluster's node. */
export function buildImages(tool: string, folder: string): void {
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

  const context = gatherFunctions();
  const file = join(deploy, "functions.Dockerfile");
  build("functions", context, "-f", file, "--build-arg", `WATCHFIRE_IMAGE=${nameOf(images.runtime)}`);
  build("volume", context, "-f", join(import.meta.dirname, "volume.Dockerfile"));
  rmSync(context, { recursive: true });

  const sizeOf = (image: string) => run("buildah", "images", "--format", "{{.Size}}", image);
  process.stdout.write(
    `${nameOf(images.runtime)}: ${sizeOf(nameOf(images.runtime))}, of that ${sizeOf(base)} ${base}\n`,
  );
}

/** A build context: all functions in one folder `functions`. */
function gatherFunctions(): string {
  const context = mkdtempSync(join(tmpdir(), "watchfire-context-"));
  for (const folder of functionFolders) cpSync(folder, join(context, "functions"), { recursive: true });
  return context;
}
