// Runs the commands of the pages on deploying and on work in a pod, on an embedded cluster, with the real helm and kubectl.
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../tools/watchfire-process.ts";
import { blocks, commandsOf } from "./blocks.ts";
import { read } from "./sections.ts";
import { Shell } from "./shell.ts";

const root = join(import.meta.dirname, "../..");

/** A shell with an empty cluster and the functions `hello` and `greet`, a copy of `hello` with another name. */
async function opened(texts: Readonly<Record<string, string>> = {}): Promise<Shell> {
  const shell = await Shell.open(texts);
  const hello = join(root, "functions/hello");
  for (const name of ["hello", "greet"]) cpSync(hello, join(shell.folder, "functions", name), { recursive: true });
  const manifest = read("functions/hello/function.yaml").replace("name: hello", "name: greet");
  shell.write("functions/greet/function.yaml", manifest);
  await shell.start("npx watchfire cluster --port 0 --kubeconfig .kube/config").says(/cluster ready/);
  return shell;
}

const isImages = (command: string) => command.includes("docker ");
const needsRuntime = (command: string) => command.includes("--for=create");
/** True for commands of the section on accounts, which does not use the chart. */
const isOfAccounts = (command: string) => /doctor|create namespace watchfire/.test(command);

test("a release is installed, functions are deployed to it, and its runtime says that they are ready", {
  timeout: 90_000,
}, async () => {
  const shell = await opened();
  const runtime =
    "npx watchfire start --deployed --function-status --namespace watchfire --listen 127.0.0.1:0 --data data";
  const ran: string[] = [];
  for (const command of commandsOf("runtime/docs/deploying.md")) {
    if (isImages(command) || isOfAccounts(command)) continue;
    if (needsRuntime(command)) shell.start(`${runtime} --kubeconfig .kube/config`);
    ran.push(`${command}\n${await shell.run(command)}`);
  }
  const said = ran.join("\n");
  expect(said).toContain("STATUS: deployed");
  expect(said).toMatch(/^greet +created +watchfire-greet-[0-9a-f]{16} +\d KiB$/m);
  expect(said).toMatch(/^greet +unchanged /m);
  expect(said).toContain("function.watchfire.dev/greet condition met");
  expect(said).toMatch(/^greet +True /m);
  const columns = /^NAME +READY.*$/m;
  const titles = (text: string) => columns.exec(text)?.[0].split(/ {2,}/);
  expect(titles(said)).toEqual(titles(read("runtime/docs/deploying.md")));
});

test("the accounts' rights are printed, granted and examined", { timeout: 60_000 }, async () => {
  const shell = await opened();
  const commands = commandsOf("runtime/docs/deploying.md");
  const from = commands.findIndex((each) => each.includes("create namespace watchfire"));
  const [namespaces = "", doctor = "", grant = "", ...more] = commands.slice(from);
  expect(more).toEqual([]);
  await shell.run(namespaces);
  await expect(shell.run(doctor)).rejects.toMatchObject({
    stdout: expect.stringMatching(
      /function hello: .*\n {2}missing: create events in namespace "demo"\n[\s\S]*watchfire rbac .* \| kubectl apply --server-side --force-conflicts -f -/,
    ),
  });
  await shell.run(grant);
  expect(await shell.run(doctor)).toMatch(/function hello: watchfire\/watchfire-hello: has all that it needs/);
});

test("the chart's README installs the release that the page on deploying does", { timeout: 60_000 }, async () => {
  const shell = await opened();
  shell.write("watchfire.creds", "an nkey's seed");
  const said: string[] = [];
  for (const command of commandsOf("deploy/chart/README.md")) said.push(await shell.run(command));
  expect(said.join("\n")).toMatch(/STATUS: deployed[\s\S]*^hello +created /m);
});

test("what the pages run in a pod works there, and the pod and its container are the chart's", {
  timeout: 90_000,
}, async () => {
  const port = await freePort();
  const shell = await opened({ "127.0.0.1:9464": `127.0.0.1:${port}`, " /functions": " functions" });
  const [install = ""] = commandsOf("runtime/docs/deploying.md").filter((each) => each.startsWith("helm install"));
  await shell.run(install);
  await shell.run("kubectl create namespace demo");
  await shell.run("npx watchfire deploy --functions functions --namespace watchfire");
  const pages = ["runtime/docs/runbook.md", "runtime/docs/executor-rights.md"];
  const inPods = pages.flatMap(commandsOf);
  const replicas = await shell.run(
    "kubectl get statefulset watchfire -n watchfire -o jsonpath='{.spec.template.spec.containers[*].name}'",
  );
  for (const command of inPods) {
    expect(command).toMatch(/^kubectl (?:exec|logs) watchfire-0 -n watchfire -c watchfire /);
    expect(replicas.split(" ")).toContain("watchfire");
  }
  const [doctor = "", logs = "", rights = ""] = inPods;
  expect(await shell.run(`${doctor} --namespace watchfire`)).toMatch(/has all that it needs/);
  // There is no pod with a log; kubectl understands the command, and requests that pod.
  await expect(shell.run(logs)).rejects.toThrow(/pods "watchfire-0" not found/);
  // Starts the two containers' commands as the chart does.
  shell.start("npx watchfire executor --socket executors.sock");
  const start = `npx watchfire start --executor-socket executors.sock --functions functions --listen 127.0.0.1:${port} --kubeconfig .kube/config --data data`;
  await shell.start(start).says(/"msg":"ready"/);
  const shown = blocks.find(({ page, text }) => page === pages[1] && text.startsWith("$ kubectl exec"))?.text ?? "";
  const names = (text: string) => [...text.matchAll(/(\w+):/g)].map(([, name]) => name).toSorted();
  expect(names(await shell.run(rights))).toEqual(names(shown.slice(shown.indexOf("\n"))));
  expect(pages.flatMap((page) => shell.missed(page))).toEqual([]);
});

test("an image cannot be built here, without a builder: its files, its name and its version are what the page says", () => {
  const page = commandsOf("runtime/docs/deploying.md");
  const [build = ""] = page.filter(isImages);
  const [, image = "", folder = ""] =
    /^npm run image && docker build -t (\S+) (\S+) && docker push \1$/.exec(build) ?? [];
  expect(existsSync(join(root, folder, "Dockerfile")), build).toBe(true);
  const sources = [...read("deploy/Dockerfile").matchAll(/^COPY (\S+) /gm)].map(([, source]) => source);
  expect(sources).toEqual([".image/node", ".image/app"]);
  const install = page.find((each) => each.startsWith("helm install")) ?? "";
  const repository = /image\.repository=(\S+)/.exec(install)?.[1];
  const appVersion = /^appVersion: (.*)$/m.exec(read("deploy/chart/Chart.yaml"))?.[1];
  expect(image).toBe(`${repository}:${appVersion}`);
});
