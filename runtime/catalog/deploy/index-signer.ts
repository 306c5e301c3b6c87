import type { Clock } from "../../base/clock.ts";
import type { ConfigMap } from "../config-map.ts";
import { contentOf, type SetIdentity, signatureOf } from "../deployed-index.ts";
import { audienceOf } from "../index-trust.ts";
import type { SigningKey } from "../signature.ts";

/** Signs an index, or its canary. */
type SignIndex = (content: string, purpose?: "deployed-functions" | "deployed-canary") => string;

/** Signs the index of one set. */
export class IndexSigner {
  private readonly key: SigningKey;
  private readonly audience: string;
  private readonly clock: Pick<Clock, "now">;

  constructor(key: SigningKey, { namespace, account, set }: SetIdentity, clock: Pick<Clock, "now">) {
    this.key = key;
    this.audience = audienceOf(namespace, account, set);
    this.clock = clock;
  }

  /** Whether this key signed the index in its present form. */
  isSigned(index: ConfigMap): boolean {
    return this.serialOf(index) > 0;
  }

  /**
   * Returns a function that signs the successor of an index, and its canary with the same serial. The serial is the time, in epoch milliseconds, but always above that
   * of every earlier signature, even if an attacker has restored an old index. If the clock went backwards, it counts on from the
   * index.
   */
  after(index: ConfigMap | undefined): SignIndex {
    const serial = Math.max(this.clock.now(), index ? this.serialOf(index) + 1 : 1);
    const { audience } = this;
    return (content, purpose = "deployed-functions") => this.key.sign({ purpose, audience, serial, content });
  }

  /** Returns 0 if this key did not sign it. */
  private serialOf(index: ConfigMap): number {
    const statement = { purpose: "deployed-functions", audience: this.audience, content: contentOf(index) } as const;
    const found = this.key.trusted.verify(signatureOf(index), statement);
    return typeof found === "number" ? found : 0;
  }
}
