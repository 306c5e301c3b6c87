import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { kubectlPath } from "../tools/kubectl.ts";
import type { TalkingProcess } from "../tools/talking-process.ts";
import { Project } from "./project.ts";

const checkout = join(import.meta.dirname, "../..");
const page = readFileSync(join(checkout, "runtime/docs/getting-started.md"), "utf8");
const commands = [...page.matchAll(/^\$ (.+)$/gm)].map(([, command = ""]) => command);

/** Commands that this run has already executed. */
const done = ["npm ci", "npm run pack"];

it("every command of the page works, in the order of the page", async () => {
  const bare = Project.empty();
  const elsewhere = (command: string) =>
    command
      .replace("../my-functions", join(bare.folder, "my-functions"))
      .replace("deploy/.packages", join(inject("tarballs")[0] ?? "", ".."));
  const kubectl = await kubectlPath();
  let here = new Project(checkout);
  let dev: TalkingProcess | undefined;
  for (const command of commands) {
    if (done.includes(command)) continue;
    if (command === "npm run dev") {
      dev = here.start("npm", "run", "dev", "--", "--port", "0");
      await dev.says(/hello {2}Added v1\/ConfigMap demo\/app-settings {2}ok/);
    } else if (command.startsWith("cd ")) here = new Project(elsewhere(command).slice(3));
    else here.run("sh", "-c", elsewhere(command).replace(/^kubectl/, kubectl));
  }
  await dev?.says(/hello {2}Modified v1\/ConfigMap demo\/app-settings {2}ok/);
  dev?.signalAlone("SIGTERM");
  await dev?.says(/drained/);
  expect(commands.length).toBeGreaterThan(8);
});
