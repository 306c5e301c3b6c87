import { WatchfireError } from "../base/errors.ts";
import { deploy } from "../catalog/deploy/deploy.ts";
import { SigningKey } from "../catalog/signature.ts";
import { command } from "./command.ts";
import { Deployment, deployerOf, deploymentOptions } from "./deployment.ts";
import { readAccount, readNamespace } from "./operand.ts";
import { kubeconfig, serviceAccount } from "./options.ts";
import { withCluster } from "./rbac.ts";
import { readSet } from "./set-name.ts";

export const undeploy = command({
  name: "undeploy",
  summary: "removes a set that was deployed: its functions, their accounts and their rights",
  options: {
    set: { value: "NAME", summary: "the set" },
    namespace: { value: "NS", summary: "the runtime's namespace, or one that shares it; default: the context's" },
    "service-account": serviceAccount,
    ...deploymentOptions,
    sign: { value: "KEY", summary: "signs the removal with this ed25519 private key, a PEM file" },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
  },
  async run({ options, given }) {
    if (options.set === undefined) throw new WatchfireError("WF_CLI_USAGE", { what: "undeploy takes --set NAME" });
    const set = readSet(options.set);
    const key = options.sign === undefined ? undefined : SigningKey.read(options.sign);
    const account = readAccount(options["service-account"]);
    return withCluster(options, async ({ transport, defaultNamespace }) => {
      const runtime = { account, namespace: readNamespace(options.namespace ?? defaultNamespace) };
      const terminal = { input: process.stdin, output: process.stderr };
      const deployment = new Deployment({
        set,
        given,
        transport,
        runtime,
        packed: [],
        manifests: [],
        filled: [],
        terminal,
        json: undefined,
      });
      const report = await deploy({
        ...runtime,
        ...deployerOf(set),
        transport,
        functions: [],
        objects: [],
        key,
        approve: async (found) => {
          if (found.functions.length + found.deleted.length > 0) return deployment.approve(found);
          throw new WatchfireError("WF_DEPLOYED_NO_SET", { what: `the runtime has no functions of the set ${set}` });
        },
      });
      if (deployment.unwritten !== undefined) return deployment.unwritten;
      deployment.print(report);
      deployment.warn(report);
      return 0;
    });
  },
});
