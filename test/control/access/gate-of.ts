import { systemClock } from "../../../runtime/base/clock.ts";
import type { AccountReviews } from "../../../runtime/control/access/account-reviews.ts";
import { AuditLog } from "../../../runtime/control/access/audit-log.ts";
import { Gate } from "../../../runtime/control/access/gate.ts";
import type { DeadLetterService } from "../../../runtime/observe/control-routes.ts";

interface GateOptions {
  readonly token: string;
  readonly deadLetters?: () => Pick<DeadLetterService, "show">;
  readonly accounts?: AccountReviews;
  readonly functionElsewhere?: (letter: string) => Promise<string | undefined>;
  /** Receives the fields and the message of each line of the audit. */
  readonly hear?: (fields: object, message?: string) => void;
}

/** A gate as the host makes it. */
export function gateOf({ token, deadLetters, accounts, hear = () => undefined, functionElsewhere }: GateOptions): Gate {
  return new Gate({
    token,
    ...(accounts && { accounts }),
    ...(functionElsewhere && { functionElsewhere }),
    audit: new AuditLog({ info: hear, warn: hear } as never, systemClock),
    deadLetters: deadLetters ?? (() => ({ show: () => Promise.reject(new Error("not asked")) })),
  });
}
