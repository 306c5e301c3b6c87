import { readEnvironment } from "../base/config.ts";
import { tuneEngine } from "../v8/engine.ts";
import { command } from "./command.ts";
import { startEmbeddedCluster } from "./embedded-cluster.ts";
import { readPort } from "./operand.ts";
import { data } from "./options.ts";
import { stopSignal, untilAborted } from "./signals.ts";

export const cluster = command({
  name: "cluster",
  summary: "serves only the embedded cluster; for development, never for production",
  options: {
    port: { value: "N", summary: "the API's port on loopback; 0 takes a free one", default: "0" },
    state: {
      value: "FILE",
      summary: "keep objects, certificates and tokens in this file; without it they are in memory only",
    },
    kubeconfig: { value: "FILE", summary: "where to write the kubeconfig", default: `${data.default}/kubeconfig` },
  },
  async run({ options }) {
    const { kubeconfig, state } = options;
    const stop = stopSignal(readEnvironment());
    const running = await startEmbeddedCluster({
      port: readPort("--port", options.port),
      kubeconfig,
      ...(state !== undefined && { state }),
    });
    tuneEngine();
    process.stdout.write(`cluster ready at ${running.url}\nkubectl --kubeconfig ${kubeconfig} get namespaces\n`);
    await untilAborted(stop);
    await running.close();
    return 0;
  },
});
