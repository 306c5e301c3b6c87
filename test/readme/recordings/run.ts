// npm run recordings: records `dev`, `explain` and the replay of a dead letter in real runs, each as an animated picture in
// runtime/docs/recordings/. Needs a kubectl on the PATH.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { bin } from "../../cli/run.ts";
import { drawRecording } from "./picture.ts";
import { type Place, pause, Terminal } from "./terminal.ts";

const root = resolve(import.meta.dirname, "../../..");

/** A project, and how its commands are run. */
class Project {
  readonly folder = mkdtempSync(join(tmpdir(), "watchfire-recording-"));
  private readonly place: Place = {
    folder: this.folder,
    env: { ...process.env, FORCE_COLOR: "1", KUBECONFIG: join(this.folder, ".watchfire/kubeconfig") },
    since: performance.now(),
    shown: (line) => line.replaceAll(this.folder, "my-functions").replaceAll(/(login#)\S+/g, "$1…"),
  };
  readonly dev = new Terminal("terminal 1", this.place);
  readonly other = new Terminal("terminal 2", this.place);

  constructor() {
    symlinkSync(join(root, "node_modules"), join(this.folder, "node_modules"));
    mkdirSync(join(this.folder, "functions"));
  }

  watchfire(...words: string[]): readonly [string, ...string[]] {
    return [process.execPath, bin, ...words];
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text);
  }

  /** Ends what runs, and removes the project. */
  async close(): Promise<void> {
    await Promise.all([this.dev.end(), this.other.end()]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Writes the picture. */
  async save(name: string, description: string): Promise<void> {
    await pause(1_000);
    const panes = [this.dev, this.other].filter(({ lines }) => lines.length > 0);
    writeFileSync(join(root, "runtime/docs/recordings", `${name}.svg`), drawRecording(description, panes));
    process.stdout.write(`runtime/docs/recordings/${name}.svg\n`);
  }
}

const greeting = (value: string) => [
  "-n",
  "demo",
  "patch",
  "configmap",
  "app-settings",
  "-p",
  `{"data":{"greeting":"${value}"}}`,
];

async function recordDev(project: Project): Promise<void> {
  const { dev, other } = project;
  await dev.run("npx watchfire new hello", project.watchfire("new", "hello"));
  await dev.start("npx watchfire dev", project.watchfire("dev"));
  await dev.says(/Added v1\/ConfigMap demo\/app-settings {2}ok/);
  await other.run(
    `kubectl ${greeting("salut")
      .join(" ")
      .replace(/({.*})/, "'$1'")}`,
    ["kubectl", ...greeting("salut")],
  );
  await dev.says(/Modified v1\/ConfigMap demo\/app-settings {2}ok/);
  await project.save(
    "dev",
    "A function is added, watchfire dev runs it within a second, and a change made with kubectl reaches it",
  );
}

async function recordExplain(project: Project): Promise<void> {
  const { dev, other } = project;
  await other.run("npx watchfire new mirror --template sync", project.watchfire("new", "mirror", "--template", "sync"));
  other.lines.length = 0;
  await dev.start("npx watchfire dev", project.watchfire("dev"));
  await dev.says(/ok/);
  dev.lines.length = 0;
  const create = ["-n", "team-a", "create", "configmap", "limits"];
  await other.run(`kubectl ${create.join(" ")}`, ["kubectl", ...create]);
  await other.run(
    "npx watchfire explain mirror team-a/limits",
    project.watchfire("explain", "mirror", "team-a/limits"),
  );
  await project.save("explain", "watchfire explain says why a function did not run for an object");
}

async function recordReplay(project: Project): Promise<void> {
  const { dev, other } = project;
  await dev.run("npx watchfire new hello", project.watchfire("new", "hello"));
  const handler = (body: string) =>
    `import { defineHandler, PermanentError } from "@watchfire/sdk";\nimport type { Handler } from "./function.d.ts";\n\nexport default defineHandler(async (event, ctx) => {\n  ${body}\n}) satisfies Handler;\n`;
  project.write(
    "functions/hello/handler.ts",
    handler('throw new PermanentError("no team in " + event.object.metadata.name);'),
  );
  dev.lines.length = 0;
  await dev.start("npx watchfire dev", project.watchfire("dev"));
  await dev.says(/Added v1\/ConfigMap demo\/app-settings {2}[^o]/);
  dev.lines.splice(
    1,
    dev.lines.findIndex(({ text }) => text.includes("Ctrl-C")),
  );
  await other.run("npx watchfire dead-letters list", project.watchfire("dead-letters", "list"));
  project.write(
    "functions/hello/handler.ts",
    handler('ctx.log.info("now it works", { type: event.type, not: PermanentError.name });'),
  );
  await dev.says(/change taken up/);
  await other.run("npx watchfire dead-letters replay --all", project.watchfire("dead-letters", "replay", "--all"));
  await dev.says(/now it works/);
  await project.save("replay", "An event that failed for good is kept; after the handler is corrected it is replayed");
}

const scenes = { dev: recordDev, explain: recordExplain, replay: recordReplay };
const chosen = process.argv.slice(2);
for (const [name, record] of Object.entries(scenes)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const project = new Project();
  await record(project).finally(() => project.close());
}
