import type { Clock, Random } from "../base/clock.ts";
import { AccountToken } from "../kube/account-token.ts";
import type { KubeTransport, SharedTransport } from "../kube/transport.ts";
import { functionAccount, placeOfFunction } from "./account.ts";

interface FunctionAccountsParts {
  /** The runtime's connection, whose account may create the functions' tokens. */
  readonly transport: SharedTransport;
  /** The runtime's namespace, which has the accounts of the functions there. Others are in their set's namespace. */
  readonly namespace: string;
  /** The runtime's ServiceAccount, whose name is the prefix of theirs. */
  readonly account: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Connections under a separate account for each function, over a shared connection pool. */
export class FunctionAccounts {
  private readonly parts: FunctionAccountsParts;
  private readonly transports = new Map<string, KubeTransport>();

  constructor(parts: FunctionAccountsParts) {
    this.parts = parts;
  }

  /** Returns the namespace of a function's account, and of the objects that its `env` names. */
  namespaceOf(functionName: string): string {
    return placeOfFunction(functionName).namespace ?? this.parts.namespace;
  }

  /** Returns a function's connection. Its requests reject with WF_KUBE_FORBIDDEN while there is no token. */
  transport(functionName: string): KubeTransport {
    let transport = this.transports.get(functionName);
    if (!transport) {
      const { account, ...parts } = this.parts;
      const namespace = this.namespaceOf(functionName);
      const name = functionAccount(account, placeOfFunction(functionName).name);
      const tokens = new AccountToken({ ...parts, namespace, account: name });
      const shown = namespace === parts.namespace ? name : `${namespace}/${name}`;
      transport = parts.transport.as(tokens, `${parts.transport.description} as ${shown}`);
      this.transports.set(functionName, transport);
    }
    return transport;
  }

  /** Forgets a removed function and its token. */
  forget(functionName: string): void {
    this.transports.delete(functionName);
  }
}
