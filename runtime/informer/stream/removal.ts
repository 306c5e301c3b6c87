import type { Clock } from "../../base/clock.ts";
import { type DefinedKind, type DefinitionPresence, definitionPresence } from "../../kube/cluster-facts.ts";
import type { KubeTransport } from "../../kube/transport.ts";

/**
 * How long a definition must be absent to count as removed, with its objects, in milliseconds: one that is replaced is gone only
 * for a moment.
 */
const certainMs = 60_000;
const recheckMs = 20_000;

/**
 * Decides whether a kind that is no longer served was removed with its objects. Two checks a minute apart must both find no
 * CustomResourceDefinition. Any other result (it exists, it cannot be read, the server does not answer) is no proof.
 */
export class Removal {
  private readonly transport: KubeTransport;
  private readonly clock: Clock;
  private absentSince: number | undefined;
  private lookedAt = Number.NEGATIVE_INFINITY;
  private reported = false;

  constructor(transport: KubeTransport, clock: Clock) {
    this.transport = transport;
    this.clock = clock;
  }

  /** Checks, if a check is due. @returns true once per removal, when it is certain. */
  async certain(of: DefinedKind): Promise<boolean> {
    const now = this.clock.monotonic();
    if (this.reported || now - this.lookedAt < recheckMs) return false;
    this.lookedAt = now;
    const presence: DefinitionPresence = await definitionPresence(this.transport, of).catch(() => "unknown");
    if (presence !== "absent") {
      this.absentSince = undefined;
      return false;
    }
    this.absentSince ??= now;
    this.reported = now - this.absentSince >= certainMs;
    return this.reported;
  }

  /** Records that the kind is served. */
  served(): void {
    this.absentSince = undefined;
    this.reported = false;
    this.lookedAt = Number.NEGATIVE_INFINITY;
  }
}
