import { destination } from "pino";
import { systemClock } from "../clock.ts";
import { readEnvironment } from "../config.ts";
import { connectKubeconfig } from "../kube/kubeconfig.ts";
import { createLog } from "../observe/log.ts";
import { Runtime } from "../runtime.ts";
import type { Command } from "./command.ts";
import { defaults } from "./defaults.ts";
import { readListen } from "./operand.ts";
import { untilAsked, untilSignal } from "./signals.ts";

export const start: Command = {
  name: "start",
  summary: "runs the functions on a cluster; JSON lines on stdout",
  options: {
    functions: { value: "DIR", summary: "the functions folder", default: defaults.functions },
    data: { value: "DIR", summary: "the data folder: positions, waiting events, dead letters", default: defaults.data },
    kubeconfig: { value: "FILE", summary: "without it: KUBECONFIG, then the pod's own account" },
    context: { value: "NAME", summary: "the kubeconfig's context" },
    "executor-socket": { value: "PATH", summary: "handlers run in a `watchfire executor --socket PATH` beside it" },
    listen: { value: "HOST:PORT", summary: "serves /livez, /readyz, /metrics, /status", default: defaults.listen },
  },
  async run({ options }) {
    const environment = readEnvironment();
    const listen = readListen("--listen", options.listen ?? defaults.listen);
    const log = createLog(environment.logLevel, destination({ fd: 1, sync: true }));
    const connection = await connectKubeconfig({
      file: options.kubeconfig,
      context: options.context,
      environment: environment.variables,
    });
    const { transport } = connection;
    const stopping = new AbortController();
    const asked = untilSignal().then(() => stopping.abort());
    try {
      const runtime = await Runtime.start(
        {
          functions: options.functions ?? defaults.functions,
          data: options.data ?? defaults.data,
          transport,
          namespace: environment.podNamespace ?? connection.defaultNamespace,
          listen,
          ...(options["executor-socket"] && { executorSocket: options["executor-socket"] }),
          clock: systemClock,
          random: Math.random,
          log,
        },
        stopping.signal,
      );
      log.info({ cluster: transport.description, url: runtime.url }, "started");
      void runtime.untilReady(stopping.signal).then(
        () => log.info({}, "ready"),
        () => undefined,
      );
      await untilAsked(asked, runtime);
      await runtime.drain();
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    } finally {
      await transport.close();
    }
    return 0;
  },
};
