import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchfire } from "../cli/run.ts";
import { natsProgram } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { startNats } from "../tools/nats.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";

const manifest = `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: greet }
spec:
  handler: ./handler.ts
  triggers:
    - name: objects
      watch: { apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [told] } }
  delivery: { retry: { maxAttempts: 1 } }
`;
const handler = `export default async (event) => {
  if (event.object.metadata.name.startsWith("bad")) throw new Error("no");
};
`;

test.skipIf(!natsProgram)(
  "a command that NATS keeps from being saved says that it is accepted and not done yet, and is done when NATS goes on",
  async () => {
    const folder = folderOf({});
    const server = await startNats();
    const cluster = await ClusterProcess.start(folder);
    onTestFinished(() => cluster.stop());
    const { client } = cluster;
    await client.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "told" } });
    const functions = folderOf({ "greet/function.yaml": manifest, "greet/handler.ts": handler });
    const more = ["--store", "nats", "--nats", server.url, "--slots", "1", "--namespace", "default"];
    const runtime = new RuntimeProcess(folder, cluster.kubeconfig, functions, more);
    await runtime.start();
    onTestFinished(() => runtime.kill());
    const run = (...args: string[]) => watchfire([...args, "--data", join(folder, "data")]);
    const letters = async (): Promise<readonly string[]> =>
      (await run("dead-letters", "list")).stdout.match(/^\d+-\d+/gm) ?? [];
    const runs = async () => (await run("runs", "greet")).stdout.match(/good/g)?.length ?? 0;
    for (const name of ["bad-1", "bad-2", "good"])
      await client.post("/api/v1/namespaces/told/configmaps", { metadata: { name } });
    await until("two are given up, and one is handled", 30_000, async () => {
      return (await letters()).length === 2 && (await runs()) === 1;
    });
    const [first = "", second = ""] = await letters();

    server.signal("SIGSTOP");
    const said = await Promise.all([
      run("dead-letters", "replay", first),
      run("dead-letters", "drop", second),
      run("redeliver", "greet", "--object", "told/good"),
      run("redeliver", "greet", "--all"),
    ]);
    for (const { status, stdout, stderr } of said) {
      expect(stderr).toMatch(/^WF_RUNTIME_PENDING: .* WF_CHECKPOINT_NATS_AWAY/);
      expect([status, stdout]).toEqual([2, ""]);
    }
    server.signal("SIGCONT");

    await until("the letters are replayed and dropped, and the object is told again", 60_000, async () => {
      const left = await letters();
      return left.length > 0 && !left.includes(first) && !left.includes(second) && (await runs()) >= 2;
    });
    // A command that was accepted is executed exactly once.
    expect(await run("dead-letters", "drop", second)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("WF_CHECKPOINT_NO_DEAD_LETTER"),
    });

    server.signal("SIGSTOP");
    const paused = await run("pause", "greet");
    expect(paused.stderr).toMatch(/^WF_RUNTIME_PENDING: .* WF_CHECKPOINT_NATS_AWAY/);
    server.signal("SIGCONT");
    expect(await run("resume", "greet")).toMatchObject({ status: 0, stdout: "greet goes on\n" });
  },
  180_000,
);
