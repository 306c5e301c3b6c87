// The commands of the page on deploying that need no image: on a cluster that has the namespaces, and the definition of the chart.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandsOf } from "./blocks.ts";
import { Shell } from "./shell.ts";

const root = join(import.meta.dirname, "../..");
const definition = join(root, "deploy/chart/files/functions.watchfire.dev.yaml");

test("functions are deployed, granted and examined by the page's commands", { timeout: 90_000 }, async () => {
  const shell = await Shell.open();
  cpSync(join(root, "functions/hello"), join(shell.folder, "functions/hello"), { recursive: true });
  await shell.start("npx watchfire cluster --port 0 --kubeconfig .kube/config").says(/cluster ready/);
  await shell.run(`kubectl apply -f ${definition}`);

  const commands = commandsOf("runtime/docs/deploying.md");
  const namespaces = commands.find((each) => each.includes("create namespace watchfire")) ?? "";
  await shell.run(namespaces);
  const one = (text: string) => commands.find((each) => each.includes(text)) ?? `false # no command with ${text}`;
  const doctor = one("watchfire doctor");
  await expect(shell.run(doctor)).rejects.toMatchObject({
    stdout: expect.stringMatching(
      /function hello: .*\n {2}missing: create events in namespace "demo"\n[\s\S]*watchfire rbac .* \| kubectl apply -f -/,
    ),
  });
  for (const grant of commands.filter((each) => each.includes("| kubectl apply"))) await shell.run(grant);
  expect(await shell.run(doctor)).toMatch(/function hello: watchfire\/watchfire-hello: has all that it needs/);
  expect(await shell.run(one("npx watchfire deploy"))).toMatch(
    /^hello +created +watchfire-hello-[0-9a-f]{16} +\d KiB$/m,
  );
  expect(await shell.run(one("npx watchfire deploy"))).toMatch(/^hello +unchanged /m);
  await shell.run(one("kubectl get functions"));
});
