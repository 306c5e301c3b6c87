import type { Clock, Random } from "../base/clock.ts";
import { AccountToken } from "../kube/account-token.ts";
import type { KubeTransport, SharedTransport } from "../kube/transport.ts";
import { functionAccount } from "./account.ts";

interface FunctionAccountsParts {
  /** The runtime's own connection, whose account may make the functions' tokens. */
  readonly transport: SharedTransport;
  /** The runtime's namespace, where the accounts are. */
  readonly namespace: string;
  /** The runtime's ServiceAccount, which theirs are named after. */
  readonly account: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Who each function is to the API server: an account of its own, over the connections that all share. */
export class FunctionAccounts {
  readonly namespace: string;
  private readonly parts: FunctionAccountsParts;
  private readonly transports = new Map<string, KubeTransport>();

  constructor(parts: FunctionAccountsParts) {
    this.parts = parts;
    this.namespace = parts.namespace;
  }

  /** The connection of a function; its requests reject with WF_KUBE_FORBIDDEN while it has no token. */
  transport(functionName: string): KubeTransport {
    let transport = this.transports.get(functionName);
    if (!transport) {
      const { account, ...parts } = this.parts;
      const name = functionAccount(account, functionName);
      const tokens = new AccountToken({ ...parts, account: name });
      transport = parts.transport.as(tokens, `${parts.transport.description} as ${name}`);
      this.transports.set(functionName, transport);
    }
    return transport;
  }

  /** Forgets a function that is gone, and its token. */
  forget(functionName: string): void {
    this.transports.delete(functionName);
  }
}
