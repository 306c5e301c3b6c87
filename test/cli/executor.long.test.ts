// Handlers in a separate `watchfire executor`: the status that `watchfire start` reports while the executor is missing.
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { readAddress } from "../../runtime/observe/address-file.ts";
import { ownConfinement } from "../../runtime/sandbox/executor-program.ts";
import { admin, cluster } from "../scenarios/cluster.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { define, manifest, Session } from "./session.ts";

vi.setConfig({ testTimeout: 60_000 });

// The rights as another process of this user sees them, on the same files.
const { user, nice, oomScoreAdj } = ownConfinement().rights;
const mayComeAgain = user === "separate";
if (!mayComeAgain)
  process.stdout.write(
    "skipped: an executor that comes again; it takes root and a checkout that every user may read, or process 1 of a container\n",
  );

const namespaces = "/api/v1/namespaces/default/configmaps";
const watch =
  "{ apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [default] }, fieldSelector: metadata.name=work }";
const handler = `export default async (event, ctx) => {
  ctx.log.info("at work", { redelivered: event.redelivered });
  if (!event.redelivered) await new Promise(() => {});
};`;

interface Said {
  readonly sandbox: { readonly reason?: string; readonly rights?: Record<string, unknown> };
  readonly functions: readonly { readonly ready: boolean; readonly reason?: string; readonly failures: number }[];
}

test.runIf(mayComeAgain)(
  "a runtime whose executors' container is gone is not ready and says why; its events run again, uncharged, in the next",
  async () => {
    const folder = folderOf({
      kubeconfig: kubeconfigOf({ url: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken }, "default"),
    });
    const [functions, socket] = [join(folder, "functions"), join(folder, "executor.sock")];
    define(functions, "works", handler, manifest("works", "  delivery: { timeout: 60s }", watch));
    const folders = [
      "--functions",
      functions,
      "--data",
      join(folder, "data"),
      "--kubeconfig",
      join(folder, "kubeconfig"),
    ];
    const start = new Session(["start", ...folders, "--listen", "127.0.0.1:0", "--executor-socket", socket]);
    const url = await until("it listens", 10_000, async () => readAddress(join(folder, "data")));
    const ready = async () => {
      const response = await fetch(`${url}/readyz`);
      return [response.status, await response.text()] as const;
    };
    const status = async () => (await (await fetch(`${url}/status`)).json()) as Said;

    await until("it says that none has come", 10_000, async () => /WF_SANDBOX_NO_WARDEN/.test((await ready())[1]));
    const first = new Session(["executor", "--socket", socket]);
    await start.says(/"msg":"ready"/);
    expect((await status()).sandbox).toMatchObject({ rights: { user, nice, oomScoreAdj } });
    await admin.post(namespaces, { metadata: { name: "work" } });
    await start.says(/"msg":"at work"/);

    first.signal("SIGKILL");
    await until("it is not ready", 10_000, async () => (await ready())[0] === 503);
    expect((await ready())[1]).toContain("WF_SANDBOX_NO_WARDEN");
    expect(await status()).toMatchObject({
      sandbox: { reason: "WF_SANDBOX_NO_WARDEN" },
      functions: [{ ready: false, reason: "ExecutorMissing", failures: 0 }],
    });

    new Session(["executor", "--socket", socket]);
    expect(await start.says(/"msg":"at work"/)).toContain('"redelivered":true');
    await until("it is ready", 10_000, async () => (await ready())[0] === 200);
    expect((await status()).functions).toMatchObject([{ ready: true, failures: 0 }]);
    await admin.delete(`${namespaces}/work`);
  },
);
