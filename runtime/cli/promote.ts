import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { type CanarySet, readCanarySet } from "../catalog/deploy/canary.ts";
import { type DeployPlan, type DeployReport, deploy } from "../catalog/deploy/deploy.ts";
import { revisionsOf } from "../catalog/deploy/rollback.ts";
import type { SetIdentity } from "../catalog/deployed-index.ts";
import { SigningKey } from "../catalog/signature.ts";
import { apiVersion } from "../control/function-status/labelled-objects.ts";
import { ApiError } from "../kube/api-error.ts";
import type { SharedTransport } from "../kube/transport.ts";
import { command } from "./command.ts";
import { deployer, messageOption, readMessage } from "./deploy-set.ts";
import { deployerOf } from "./deployment.ts";
import { readAccount, readNamespace } from "./operand.ts";
import { functions, kubeconfig, serviceAccount } from "./options.ts";
import { withCluster } from "./rbac.ts";
import { readSet, setNameOf, setOption } from "./set-name.ts";

const commonOptions = {
  set: setOption,
  namespace: { value: "NS", summary: "the runtime's namespace, or one that shares it; default: the context's" },
  "service-account": serviceAccount,
  sign: { value: "KEY", summary: "signs the change with this ed25519 private key, which must have signed the canary" },
  kubeconfig,
  context: { value: "NAME", summary: "the kubeconfig's context" },
} as const;

export const promote = command({
  name: "promote",
  summary: "makes a set's canary its current code, as a new revision; refused if the runtime has aborted it",
  options: { ...commonOptions, message: messageOption },
  run: ({ options }) =>
    changeCanary(options, options.message ?? "", async ({ canary, promoted }, { transport, identity, text, write }) => {
      await assertAlive(
        canary.id,
        canary.functions.map(({ name }) => name),
        transport,
        identity,
      );
      const { revisions, current } = await revisionsOf(transport, identity);
      // Triggers and reads are those of the current revision.
      const kinds = revisions.find(({ number }) => number === current)?.kinds ?? [];
      const message = text === "" ? "promoted the canary" : `promoted the canary: ${text}`;
      const { revision } = await write({ functions: promoted, kinds, git: canary.git, message });
      return `promoted the canary${revision === undefined ? "" : ` as revision ${revision}`}`;
    }),
});

export const abort = command({
  name: "abort",
  summary: "ends a set's canary: its current code gets all keys",
  options: { ...commonOptions, reason: { value: "TEXT", summary: "why, for the runtime's audit log" } },
  run: ({ options }) =>
    changeCanary(options, options.reason ?? "", async ({ current }, { text, write }) => {
      await write({ functions: current, kinds: [], git: null, message: text, canary: 0 });
      return "aborted the canary";
    }),
});

type CanaryChange = Pick<DeployPlan, "functions" | "canary"> &
  Pick<NonNullable<DeployPlan["note"]>, "kinds" | "git" | "message">;

interface CanaryTools {
  readonly transport: SharedTransport;
  readonly identity: SetIdentity;
  readonly text: string;
  readonly write: (change: CanaryChange) => Promise<DeployReport>;
}

/** Reads the canary, and lets `change` end it. Rights stay as they are, since a canary has those of the current code. */
async function changeCanary(
  options: Readonly<Record<"set" | "namespace" | "sign" | "kubeconfig" | "context", string | undefined>> & {
    readonly "service-account": string;
  },
  text: string,
  change: (set: CanarySet, tools: CanaryTools) => Promise<string>,
): Promise<number> {
  const set = options.set === undefined ? setNameOf(functions.default, process.cwd()) : readSet(options.set);
  const key = options.sign === undefined ? undefined : SigningKey.read(options.sign);
  const account = readAccount(options["service-account"]);
  readMessage(text);
  return withCluster(options, async ({ transport, defaultNamespace }) => {
    const identity = { account, namespace: readNamespace(options.namespace ?? defaultNamespace), set };
    const found = await readCanarySet(transport, identity, key?.trusted);
    const by = await deployer(transport);
    const write = ({ functions: code, canary, ...note }: CanaryChange) =>
      deploy({
        ...{ ...identity, ...deployerOf(set), transport, functions: code, objects: [], codeOnly: true, key, canary },
        note: { by, ...note },
        endsCanary: found.canary.id,
        approve: async () => true,
      });
    const done = await change(found, { transport, identity, text, write });
    const names = found.canary.functions.map(({ name }) => name).join(", ");
    process.stderr.write(`${done} of the set ${set} (${names}) for the runtime ${identity.namespace}/${account}\n`);
    return 0;
  });
}

const objectSchema = z.looseObject({
  status: z.looseObject({ canary: z.looseObject({ id: z.string(), state: z.string() }).optional() }).optional(),
});

/**
 * Checks what the runtime reports of a canary in the Function objects.
 * @throws WatchfireError WF_DEPLOYED_CANARY_ABORTED if it has aborted it, or does not report it
 */
async function assertAlive(
  id: string,
  names: readonly string[],
  transport: SharedTransport,
  { namespace, set }: SetIdentity,
): Promise<void> {
  for (const name of names) {
    const path = `/apis/${apiVersion}/namespaces/${namespace}/functions/${name}`;
    const found = await transport.json<unknown>({ method: "GET", path }).catch((error: unknown) => {
      if (error instanceof ApiError && (error.status === 404 || error.status === 403)) return {};
      throw error;
    });
    const canary = objectSchema.safeParse(found).data?.status?.canary;
    if (canary?.id === id && canary.state === "running") continue;
    const what =
      canary?.id === id
        ? `the runtime has aborted the canary of ${name}, of the set ${set}`
        : `the Function ${namespace}/${name} does not report the canary of the set ${set}`;
    throw new WatchfireError("WF_DEPLOYED_CANARY_ABORTED", { what });
  }
}
