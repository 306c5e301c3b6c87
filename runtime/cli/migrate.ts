import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { recogniseCluster } from "../host/recognise-cluster.ts";
import { Elector } from "../lease/elector.ts";
import { leaseApi } from "../lease/lease-api.ts";
import { eligibleFor, openStore } from "../migrate/open-store.ts";
import { createLog } from "../observe/log.ts";
import { candidate } from "./candidate.ts";
import { command } from "./command.ts";
import { natsOptions, readNats } from "./nats-options.ts";
import { readAccount, readNamespace } from "./operand.ts";
import { data, kubeconfig, serviceAccount } from "./options.ts";
import { stopSignal } from "./signals.ts";
import { readStore } from "./store-limits.ts";

export const migrate = command({
  name: "migrate",
  summary: "moves checkpoints to another store once no runtime works with them; JSON lines on stdout",
  options: {
    store: {
      value: "WHERE",
      summary: "`sqlite`: to the data folder; `kubernetes`: to Secrets; `nats`: to NATS JetStream",
      default: "sqlite",
    },
    data,
    pod: { value: "NAME", summary: "the pod whose volume has the data folder; default: this one" },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    namespace: { value: "NS", summary: "the runtime's namespace; default: the pod's, then the context's" },
    "service-account": serviceAccount,
    ...natsOptions,
  },
  async run({ options, given }) {
    const environment = readEnvironment();
    const store = readStore(options.store);
    const nats = readNats(options, store);
    const account = readAccount(options["service-account"]);
    const named = options.namespace === undefined ? undefined : readNamespace(options.namespace);
    const { identity, pod: here } = candidate(environment);
    const { context, pod = here } = options;
    const { connectKubeconfig } = await import("../kube/kubeconfig.ts");
    const log = createLog(environment.logLevel, process.stdout);
    const signal = stopSignal(environment);
    const access = { file: options.kubeconfig, context, environment: environment.variables };
    const { transport, defaultNamespace } = await connectKubeconfig(access);
    const namespace = named ?? environment.podNamespace ?? defaultNamespace;
    const parts = { transport, clock: systemClock, random: Math.random, log };
    const api = leaseApi(transport, namespace, account);
    const elector = new Elector({ ...parts, api, identity, eligible: eligibleFor(pod, nats) });
    try {
      await elector.campaign(signal);
      const cluster = await recogniseCluster({ ...parts, interactive: true }, signal, () => {});
      const place = { namespace, account, identity, pod, nats, cluster };
      const folder = given.has("data") ? options.data : (environment.dataFolder ?? options.data);
      const opened = await openStore({ ...parts, ...place, store, data: folder, onLost: () => {} }, elector, signal);
      // The next start still has to learn how the last run ended.
      await opened.close(opened.previousEnd !== "killed" && opened.previousEnd !== "power-loss");
      log.info({ store }, "checkpoints are in this store");
    } finally {
      await elector.release();
      await transport.close();
    }
    return 0;
  },
});
