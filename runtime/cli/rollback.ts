import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { bundleOf } from "../bundle/script-bundle.ts";
import type { RevisionNote } from "../catalog/deploy/revision.ts";
import { type RestoredFunction, readRevisionCode, revisionsOf, revisionToRestore } from "../catalog/deploy/rollback.ts";
import type { SetIdentity } from "../catalog/deployed-index.ts";
import { SigningKey, TrustedKeys } from "../catalog/signature.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import { Discovery } from "../kube/discovery.ts";
import type { SharedTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { loadFunctions } from "../manifest/load.ts";
import { builtInKinds, firstOf, type KnownKinds, servedKinds } from "../rbac/kinds.ts";
import { tryLoading } from "./built-functions.ts";
import { command } from "./command.ts";
import { areNone, deployer, deploySet, messageOption, readMessage, type SetCode } from "./deploy-set.ts";
import { deploymentOptions } from "./deployment.ts";
import { functions, kubeconfig, output } from "./options.ts";
import { readRules, rulesOptions, withCluster } from "./rbac.ts";
import { runtimeNamespaceOption, withRuntimeNamespace } from "./runtime-namespace.ts";
import { readSet, setNameOf, setOption } from "./set-name.ts";

export const rollback = command({
  name: "rollback",
  summary: "puts back the code and the manifests of an earlier revision of a set, as a new revision; checkpoints stay",
  options: {
    set: setOption,
    to: { value: "N", summary: "the revision; default: the one before the current one" },
    namespace: { value: "NS", summary: "the runtime's namespace, or one that shares it; default: the context's" },
    "runtime-namespace": runtimeNamespaceOption,
    "service-account": rulesOptions["service-account"],
    store: rulesOptions.store,
    message: messageOption,
    ...deploymentOptions,
    sign: {
      value: "KEY",
      summary:
        "signs the rollback with this ed25519 private key; it, or a key of --trust, must have signed the revision",
    },
    trust: {
      value: "KEY",
      many: true,
      summary: "refuses a revision that neither this ed25519 public key, a PEM file, nor that of --sign has signed",
    },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    output: output("json"),
  },
  async run({ options, given: flags }) {
    const set = options.set === undefined ? setNameOf(functions.default, process.cwd()) : readSet(options.set);
    const to = readNumber(options.to);
    const reason = readMessage(options.message ?? "");
    const key = options.sign === undefined ? undefined : SigningKey.read(options.sign);
    const keys = [key?.trusted, options.trust.length > 0 ? TrustedKeys.read(options.trust) : undefined];
    return withCluster(options, async ({ transport, defaultNamespace }) => {
      const given = readRules({ ...options, namespace: options.namespace ?? defaultNamespace }, new Set());
      const rules = await withRuntimeNamespace(given, transport);
      const identity: SetIdentity = { ...rules, set };
      const history = await revisionsOf(transport, identity);
      const revision = revisionToRestore(history, to, identity);
      const chosen = { revision, copies: history.copies };
      const restored = await readRevisionCode(transport, identity, chosen, TrustedKeys.any(keys));
      const code = await open(restored, revision.number);
      if (!code) return 1;
      const text = `rolled back to revision ${revision.number}`;
      const note = {
        by: await deployer(transport),
        git: revision.git,
        message: reason === "" ? text : `${text}: ${reason}`,
        ...(history.current !== undefined && { replaces: history.current }),
      };
      const kinds = await kindsFor(code.loaded.functions, revision.kinds, transport);
      const isJson = options.output === "json";
      return deploySet(code, { set, rules, kinds, transport, given: flags, key, note, isJson, filled: [] });
    });
  },
});

/** @throws WatchfireError WF_CLI_USAGE */
function readNumber(text: string | undefined): number | undefined {
  if (text === undefined || /^[1-9]\d{0,14}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new WatchfireError("WF_CLI_USAGE", { what: "--to takes the number of a revision", actual: text });
}

/** Reads the manifests and loads the code, as for a deployment. Faults go to stderr; `undefined` if there are any. */
async function open(restored: readonly RestoredFunction[], number: number): Promise<SetCode | undefined> {
  const texts = new Map(restored.map(({ name, parts }) => [`revision ${number}/${name}`, parts.manifest]));
  const loaded = await loadFunctions("", { texts, checkExpression });
  if (!areNone(loaded.faults)) return undefined;
  const code = new Map(restored.map(({ name, parts }) => [name, bundleOf(parts.script, parts.sourceMap)]));
  const built = await tryLoading(loaded.functions, async ({ name }) => {
    const bundle = code.get(name);
    if (bundle) return bundle;
    throw new WatchfireError("WF_DEPLOYED_REVISION_GONE", {
      what: `revision ${number} has a manifest of ${name}, and no code for it`,
    });
  });
  return areNone(built.flatMap(({ faults }) => faults)) ? { loaded, built, packed: restored } : undefined;
}

/** The kinds as the cluster serves them, then built-in ones, then those of the revision. */
async function kindsFor(
  manifests: readonly FunctionManifest[],
  recorded: RevisionNote["kinds"],
  transport: SharedTransport,
): Promise<KnownKinds> {
  const known: KnownKinds = (apiVersion, kind) =>
    recorded.find((each) => each.apiVersion === apiVersion && each.kind === kind);
  return firstOf(await servedKinds(new Discovery(transport, systemClock), manifests), builtInKinds, known);
}
