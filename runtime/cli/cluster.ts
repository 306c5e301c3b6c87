import { systemClock } from "../clock.ts";
import { startCluster } from "../dev/cluster/cluster.ts";
import type { Command } from "./command.ts";
import { defaults } from "./defaults.ts";
import { readPort } from "./operand.ts";
import { untilSignal } from "./signals.ts";

export const cluster: Command = {
  name: "cluster",
  summary: "serves the embedded cluster alone; for development, never for production",
  options: {
    port: { value: "N", summary: "the API's port on loopback; 0 takes a free one", default: "0" },
    state: {
      value: "FILE",
      summary: "keep objects, certificates and tokens in this file; without it they go with the process",
    },
    kubeconfig: { value: "FILE", summary: "where to write the kubeconfig", default: `${defaults.data}/kubeconfig` },
  },
  async run({ options }) {
    const kubeconfigFile = options.kubeconfig ?? `${defaults.data}/kubeconfig`;
    const running = await startCluster({
      port: readPort("--port", options.port ?? "0"),
      kubeconfigFile,
      clock: systemClock,
      ...(options.state === undefined ? {} : { stateFile: options.state }),
    });
    process.stdout.write(`cluster ready at ${running.url}\nkubectl --kubeconfig ${kubeconfigFile} get namespaces\n`);
    await untilSignal();
    await running.close();
    return 0;
  },
};
