// Runs a cluster and a runtime separately, as the page on commands starts them, and the dead letters' commands of the page on
// operating.
import { expect, test } from "vitest";
import { until } from "../tools/until.ts";
import { freePort } from "../tools/watchfire-process.ts";
import { commandsOf } from "./blocks.ts";
import { Shell } from "./shell.ts";

const manifest = `
apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: myapp }
spec:
  handler: ./handler.ts
  triggers: [{ watch: { apiVersion: v1, kind: ConfigMap, fieldSelector: metadata.name=broken } }]
  delivery: { retry: { maxAttempts: 1 } }
`;

test("dead letters are listed, shown and replayed as the page says, on a cluster and a runtime that were started apart", {
  timeout: 90_000,
}, async () => {
  const [port, apiPort] = [await freePort(), await freePort()];
  const shell = await Shell.open({ "127.0.0.1:9464": `127.0.0.1:${port}`, "--port 6443": `--port ${apiPort}` });
  shell.write("functions/myapp/function.yaml", manifest);
  shell.write(
    "functions/myapp/handler.ts",
    `export default (event) => { if (!event.redelivered) throw new Error("no"); };`,
  );
  const [startCluster = "", start = ""] = commandsOf("runtime/docs/commands.md");
  await shell.start(startCluster).says(/cluster ready/);
  const runtime = shell.start(`${start} --listen 127.0.0.1:${port}`);
  await runtime.says(/"msg":"ready"/);
  await shell.run("kubectl --kubeconfig .watchfire/kubeconfig create configmap broken");

  const [list = "", show = "", replay = "", replayAll = "", ...others] = commandsOf("runtime/docs/operating.md");
  const letters = await until("there is a dead letter", 30_000, async () => {
    const said = await shell.run(list);
    return said.includes("myapp") ? said : undefined;
  });
  expect(letters).toContain("default/broken");
  expect(await shell.run(show)).toMatch(/Error: no/);
  await shell.run(replay);
  await until(
    "it has been handled",
    30_000,
    async () => (await shell.run(list)).includes("no dead letters") || undefined,
  );
  await shell.run(replayAll);
  const says = [/failed .*Error: no/, /attempt failed/, /^redelivered 1\n$/, /^redelivered 1/, /is paused/, /goes on/];
  expect(others).toHaveLength(says.length);
  for (const [index, command] of others.entries()) expect(await shell.run(command)).toMatch(says[index] ?? /-/);
  for (const page of ["runtime/docs/commands.md", "runtime/docs/operating.md"]) expect(shell.missed(page)).toEqual([]);
});
