import { z } from "zod";
import { clean, cut } from "../../base/wording.ts";
import { foundSchema } from "../../catalog/api-objects.ts";
import { type Revision, readRevision } from "../../catalog/deploy/revision.ts";
import type { SetIdentity } from "../../catalog/deployed-index.ts";
import type { TakenRevision } from "../../catalog/deployed-set.ts";
import { revisionName } from "../../catalog/names.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { type AuditEntry, type AuditLog, sinceStart } from "./audit-log.ts";
import { reasonLimit } from "./reason.ts";

/** Time limit of a request for a record, in milliseconds. */
const timeoutMs = 10_000;

/** How commands begin the message of their revision, with the verb of each. */
const beginnings = [
  [/^rolled back to revision \d+(?:: )?/, "rollback"],
  [/^promoted the canary(?:: )?/, "promote"],
] as const;

const listSchema = z.looseObject({ items: z.array(foundSchema).max(1) });

interface RevisionAuditParts {
  /** The runtime's own connection, which may list ConfigMaps. */
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly account: string;
  readonly audit: AuditLog;
  /** Returns a function's name in the runtime, for sets of another namespace. Default: its own name. */
  readonly nameOf?: (functionName: string) => string;
  /** Whether this replica writes the Events of a function. */
  readonly isOwn: (functionName: string) => boolean;
}

/** Logs each revision that the runtime takes up, with who deployed it and why, as its record says. Never rejects. */
export class RevisionAudit {
  private readonly parts: RevisionAuditParts;
  private last: Promise<void> = Promise.resolve();

  constructor(parts: RevisionAuditParts) {
    this.parts = parts;
  }

  took(revision: TakenRevision): void {
    this.last = this.last.then(() => this.record(revision));
  }

  private async record({ set, number, changed, isEmpty, isFirst, canary }: TakenRevision): Promise<void> {
    const { namespace, account, audit, nameOf, isOwn } = this.parts;
    const known = canary
      ? { ...entryOf(canary), verb: canary.functions.length > 0 ? "canary" : "abort" }
      : await this.recordOf({ namespace, account, set }, number).catch(() => undefined);
    audit.record({
      who: "unknown",
      verb: isEmpty ? "undeploy" : "deploy",
      ...known,
      set: nameOf ? `${namespace}/${set}` : set,
      ...(number !== undefined && { revision: number }),
      functions: changed.map((name) => nameOf?.(name) ?? name).filter(isOwn),
      result: isFirst ? sinceStart : "done",
    });
  }

  private async recordOf(identity: SetIdentity, number: number | undefined): Promise<Partial<AuditEntry>> {
    if (number === undefined) return {};
    const { transport, namespace } = this.parts;
    const name = revisionName(identity.account, identity.set, number);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const query = { fieldSelector: `metadata.name=${name}`, limit: "1" };
    const list = listSchema.parse(await transport.json<unknown>({ method: "GET", path, query, timeoutMs }));
    const [found] = list.items;
    const revision = found && readRevision({ ...found, kind: "ConfigMap" }, identity);
    if (!revision) return {};
    const [beginning = "", verb = "deploy"] = beginnings.find(([beginning]) => beginning.test(revision.message)) ?? [];
    return { ...entryOf({ ...revision, message: revision.message.replace(beginning, "") }), verb };
  }
}

/** Returns who wrote a record, when, why and from where. */
const entryOf = ({ by, git, message, at }: Pick<Revision, "by" | "git" | "message" | "at">) => ({
  who: clean("account" in by ? by.account : `unknown: ${by.unknown}`).slice(0, 256),
  ...(message !== "" && { reason: cut(clean(message), reasonLimit) }),
  ...(git && { from: `commit ${git.commit}${git.dirty ? " with changes" : ""}` }),
  ...(at !== null && { at }),
});
