import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { audienceOfRuntime } from "../control/access/account-reviews.ts";
import { bearerOf } from "../kube/bearer-token.ts";
import { dnsLabel, dnsSubdomain } from "../kube/names.ts";
import { forwardFault, type KubectlClient } from "./kubectl-client.ts";
import { type RuntimePod, tokenOf } from "./runtime-pods.ts";

/** How long a token of `--as-account` is requested for, and after which part of it another is requested, in milliseconds. */
const accountTokenMs = 3_600_000;
const renewAt = 0.75;

interface LoginOptions {
  readonly namespace?: string | undefined;
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** NAME or NAMESPACE/NAME of a ServiceAccount. */
  readonly "as-account"?: string | undefined;
}

/**
 * Returns the token with which a command asks a runtime in a cluster: of the account that `--as-account` names, of the kubeconfig's
 * user, or of the pod's data folder, which needs pods/exec.
 * @param reviews whether the runtime reviews tokens of the cluster. A token is sent to no other.
 * @throws WatchfireError WF_CLI_FORWARD with what to do if there is no way
 */
export async function loginTo(
  kubectl: KubectlClient,
  pod: RuntimePod,
  options: LoginOptions,
  environment: Readonly<Record<string, string | undefined>>,
  reviews: boolean,
): Promise<() => Promise<string>> {
  const { "as-account": account, kubeconfig: file, context, namespace: named } = options;
  if (account !== undefined) {
    if (reviews) return accountToken(kubectl, pod, account);
    throw forwardFault("the runtime reviews no tokens of the cluster, so --as-account is of no use", {
      hint: "set the chart's `tokenReview.enabled=true`, or leave --as-account out",
    });
  }
  const bearer = reviews ? await bearerOf({ file, context, environment }) : undefined;
  if (bearer?.token) {
    if (named !== undefined || bearer.namespace === pod.namespace) return bearer.token;
    throw forwardFault("the runtime's namespace is not named, so your login is not sent to it", {
      actual: pod.namespace,
      hint: `name it with -n ${pod.namespace}, if you trust whoever may create pods there`,
    });
  }
  try {
    const token = await tokenOf(kubectl, pod);
    return async () => token;
  } catch (error) {
    if (!(error instanceof WatchfireError)) throw error;
    throw bearer ? withoutToken(bearer.why ?? "", error) : withoutReview(error);
  }
}

const withoutToken = (why: string, { detail }: WatchfireError): WatchfireError =>
  forwardFault(
    `your kubeconfig has no token for the runtime: ${clean(why)}; and the pod's own is not read: ${detail.what}`,
    {
      hint: "pass --as-account NAME, a ServiceAccount of the runtime's namespace with the Role that `watchfire rbac --role` prints; you need create on serviceaccounts/token of that name, or else on pods/exec",
    },
  );

const withoutReview = ({ detail }: WatchfireError): WatchfireError =>
  forwardFault(detail.what, {
    hint: "the runtime reviews no tokens of the cluster, so you need create on pods/exec; with the chart's `tokenReview.enabled=true` your own login is enough",
  });

/** A token of a ServiceAccount that is for this runtime alone, and is requested again before it ends. */
async function accountToken(kubectl: KubectlClient, pod: RuntimePod, account: string): Promise<() => Promise<string>> {
  const [name = "", namespace = pod.namespace, ...more] = account.split("/").reverse();
  if (!dnsSubdomain.test(name) || !dnsLabel.test(namespace) || more.length > 0) {
    const hint = "such as oncall, or people/oncall for one of another namespace";
    throw new WatchfireError("WF_CLI_USAGE", {
      what: "--as-account takes NAME or NAMESPACE/NAME",
      actual: account,
      hint,
    });
  }
  const audience = audienceOfRuntime(pod.namespace, pod.account);
  let kept: { readonly token: string; readonly at: number } | undefined;
  const source = async () => {
    const now = systemClock.monotonic();
    if (!kept || now - kept.at > accountTokenMs * renewAt) {
      const words = [`--namespace=${namespace}`, `--audience=${audience}`, `--duration=${accountTokenMs / 1000}s`];
      kept = { token: (await kubectl.ask("create", "token", ...words, name)).trim(), at: now };
    }
    return kept.token;
  };
  await source();
  return source;
}
