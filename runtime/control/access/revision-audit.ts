import { clean, cut } from "../../base/wording.ts";
import { accountOf, type Revision } from "../../catalog/deploy/revision.ts";
import type { RevisionRecords } from "../../catalog/deploy/revision-records.ts";
import type { TakenRevision } from "../../catalog/deployed-set.ts";
import { type AuditEntry, type AuditLog, sinceStart } from "./audit-log.ts";
import { reasonLimit } from "./reason.ts";

/** How commands begin the message of their revision, with the verb of each. */
const beginnings = [
  [/^rolled back to revision \d+(?:: )?/, "rollback"],
  [/^promoted the canary(?:: )?/, "promote"],
] as const;

interface RevisionAuditParts {
  readonly records: Pick<RevisionRecords, "read">;
  readonly namespace: string;
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
    const { namespace, audit, nameOf, isOwn } = this.parts;
    const known = canary
      ? { ...entryOf(canary), verb: canary.functions.length > 0 ? "canary" : "abort" }
      : await this.noteOf(set, number).catch(() => undefined);
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

  private async noteOf(set: string, number: number | undefined): Promise<Partial<AuditEntry>> {
    const revision = await this.parts.records.read(set, number);
    if (!revision) return {};
    const [beginning = "", verb = "deploy"] = beginnings.find(([beginning]) => beginning.test(revision.message)) ?? [];
    return { ...entryOf({ ...revision, message: revision.message.replace(beginning, "") }), verb };
  }
}

/** Returns who wrote a record, when, why and from where. */
const entryOf = ({ by, git, message, at }: Pick<Revision, "by" | "git" | "message" | "at">) => ({
  who: accountOf({ by }),
  ...(message !== "" && { reason: cut(clean(message), reasonLimit) }),
  ...(git && { from: `commit ${git.commit}${git.dirty ? " with changes" : ""}` }),
  ...(at !== null && { at }),
});
