import { execFile, spawn } from "node:child_process";
import { constants } from "node:os";
import { type Clock, systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { findKubectl, kubectlPage } from "../dev/kubectl.ts";

/** Maximum size of an answer, in bytes: a list of the pods of one release has some 10 KiB for each. */
const answerLimit = 16 * 2 ** 20;
/** How long one answer, and the start of a forwarded port, may take, in milliseconds. */
const answerMs = 30_000;

/** A forwarded port of a pod. */
interface ForwardedPort {
  /** Its address on this machine. */
  readonly url: string;
  /** Ends the forwarding. */
  close(): void;
}

/** The user's kubectl, for a cluster of their kubeconfig. */
export class KubectlClient {
  private readonly program: string;
  private readonly words: readonly string[];
  private readonly env: Readonly<NodeJS.ProcessEnv>;
  private readonly clock: Clock;

  /**
   * @param env the variables of this process, which name the kubeconfig, and whose PATH has kubectl
   * @throws WatchfireError WF_CLI_FORWARD if there is no kubectl
   */
  constructor(
    env: Readonly<NodeJS.ProcessEnv>,
    { kubeconfig, context }: { readonly kubeconfig?: string | undefined; readonly context?: string | undefined },
    clock: Clock = systemClock,
  ) {
    const program = findKubectl(env.PATH);
    if (program === undefined) throw forwardFault("no kubectl is on your PATH", { hint: `install it: ${kubectlPage}` });
    this.program = program;
    this.words = [
      ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
      ...(context === undefined ? [] : [`--context=${context}`]),
    ];
    this.env = env;
    this.clock = clock;
  }

  /** Runs kubectl to its end. Returns its standard output. @throws WatchfireError WF_CLI_FORWARD with what it said */
  ask(...words: readonly string[]): Promise<string> {
    const options = { env: this.env, maxBuffer: answerLimit, timeout: answerMs };
    return new Promise((resolve, reject) => {
      execFile(this.program, [...this.words, ...words], options, (error, stdout, stderr) => {
        if (!error) resolve(stdout);
        else if (error.killed) reject(forwardFault(`kubectl ${words[0]} did not end within ${answerMs / 1000} s`));
        else reject(forwardFault(`kubectl ${words[0]}: ${saidIn(stderr) || error.message}`));
      }).stdin?.end();
    });
  }

  /**
   * Forwards a pod's port to a free one of this machine's loopback, until it is closed or this process ends.
   * @throws WatchfireError WF_CLI_FORWARD
   */
  async forward({
    namespace,
    name,
    port,
  }: {
    readonly namespace: string;
    readonly name: string;
    readonly port: number;
  }) {
    const words = ["port-forward", `--namespace=${namespace}`, "--address=127.0.0.1", `pod/${name}`, `:${port}`];
    // A separate process group, so that ctrl-c does not end it before the command that uses it.
    const child = spawn(this.program, [...this.words, ...words], {
      env: this.env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    // Without a listener, these signals would end this process and leave kubectl. `stopSignal` replaces the listeners.
    const interrupt = (signal: NodeJS.Signals) => process.exit(128 + constants.signals[signal]);
    const close = () => {
      process.off("exit", close);
      for (const signal of ["SIGINT", "SIGHUP"] as const) process.off(signal, interrupt);
      child.kill();
    };
    process.on("exit", close);
    for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, interrupt);
    const { promise, resolve, reject } = Promise.withResolvers<ForwardedPort>();
    let said = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-1000);
      const [, local] = /Forwarding from (127\.0\.0\.1:\d+) ->/.exec(said) ?? [];
      if (local !== undefined) resolve({ url: `http://${local}`, close });
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-1000);
    });
    child.on("error", (error) => reject(forwardFault(`kubectl port-forward: ${error.message}`)));
    child.on("close", () => reject(forwardFault(`kubectl port-forward: ${saidIn(errors) || "it ended"}`)));
    const late = this.clock.after(answerMs, () =>
      reject(forwardFault(`kubectl port-forward did not begin within ${answerMs / 1000} s`)),
    );
    try {
      return await promise;
    } catch (error) {
      close();
      throw error;
    } finally {
      late.cancel();
    }
  }
}

/** The last line of kubectl's errors, which has the reason. A reference to its help may follow. */
const saidIn = (stderr: string): string => {
  const lines = stderr.trim().split("\n");
  return clean(lines.findLast((line) => !/^See '/.test(line)) ?? "");
};

export const forwardFault = (
  what: string,
  more: { readonly actual?: string | undefined; readonly hint?: string } = {},
): WatchfireError => new WatchfireError("WF_CLI_FORWARD", { what, ...more });
