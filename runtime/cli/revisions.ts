import type { Revision } from "../catalog/deploy/revision.ts";
import { revisionsOf } from "../catalog/deploy/rollback.ts";
import { table } from "../dev/table.ts";
import { command } from "./command.ts";
import { readAccount, readNamespace } from "./operand.ts";
import { functions, kubeconfig, output, serviceAccount } from "./options.ts";
import { withCluster } from "./rbac.ts";
import { readSet, setNameOf, setOption } from "./set-name.ts";

/** Shown characters of a commit and of a digest. */
const shortLength = 10;

export const revisions = command({
  name: "revisions",
  summary: "lists the deployments of a set, newest first: number, time, account, commit and message",
  options: {
    set: setOption,
    namespace: { value: "NS", summary: "the runtime's namespace, or one that shares it; default: the context's" },
    "service-account": serviceAccount,
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    output: output("json"),
  },
  async run({ options }) {
    const set = options.set === undefined ? setNameOf(functions.default, process.cwd()) : readSet(options.set);
    const account = readAccount(options["service-account"]);
    return withCluster(options, async ({ transport, defaultNamespace }) => {
      const namespace = readNamespace(options.namespace ?? defaultNamespace);
      const history = await revisionsOf(transport, { account, namespace, set });
      const { current = null } = history;
      if (options.output === "json") {
        const answer = { namespace, account, set, current, revisions: history.revisions.map((each) => answerOf(each)) };
        process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
        return 0;
      }
      const rows = history.revisions.map((each) => rowOf(each, current));
      const title = ["REVISION", "DEPLOYED", "BY", "COMMIT", "DIGEST", "FUNCTIONS", "MESSAGE"];
      if (rows.length > 0) process.stdout.write(`${table(title, rows).join("\n")}\n`);
      else process.stderr.write(`the set ${set} of the runtime ${namespace}/${account} has no revision\n`);
      return 0;
    });
  },
});

const answerOf = ({ number, at, by, git, message, digest, functions: of, isSigned }: Revision) => ({
  number,
  at,
  by: "account" in by ? by.account : null,
  byUnknown: "unknown" in by ? by.unknown : null,
  git,
  message,
  digest,
  isSigned,
  functions: of,
});

function rowOf({ number, at, by, git, message, digest, functions: of }: Revision, current: number | null): string[] {
  return [
    `${number}${number === current ? " (current)" : ""}`,
    at === null ? "unknown" : at.replace(/\.\d+Z$/, "Z"),
    "account" in by ? by.account : "unknown",
    git === null ? "" : `${git.commit.slice(0, shortLength)}${git.dirty ? " (dirty)" : ""}`,
    digest.slice(0, shortLength),
    String(of.length),
    message || ("unknown" in by ? by.unknown : ""),
  ];
}
