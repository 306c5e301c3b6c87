import { vi } from "vitest";
import type { Client } from "../target/client.ts";

const group = "admissionregistration.k8s.io";
const path = `/apis/${group}/v1/validatingadmissionpolic`;
const configMaps = "/api/v1/namespaces/default/configmaps";

/**
 * Number of expressions in one policy. The API server sends at most 4,096 characters of warnings (`k8s.io/apiserver`,
 * pkg/endpoints/filters/warning.go).
 */
const perPolicy = 25;

/**
 * Evaluates expressions with an API server's CEL: the warnings of a ValidatingAdmissionPolicy contain their values over an
 * object.
 */
export class AdmissionEvaluator {
  private readonly client: Client;
  private policies = 0;

  constructor(client: Client) {
    this.client = client;
  }

  /** Returns the value of each expression as `%s` formats it; `undefined` if it does not compile or has no value. */
  async evaluate(expressions: readonly string[]): Promise<ReadonlyMap<string, string | undefined>> {
    const found = new Map<string, string | undefined>(expressions.map((expression) => [expression, undefined]));
    const parts: (readonly string[])[] = [];
    for (let at = 0; at < expressions.length; at += perPolicy) parts.push(expressions.slice(at, at + perPolicy));
    // All policies at once, because a policy takes effect only a second after its creation.
    const values = await Promise.all(parts.map((part) => this.evaluateSome(part)));
    for (const [expression, text] of values.flat()) found.set(expression, text);
    return found;
  }

  private async evaluateSome(expressions: readonly string[]): Promise<[string, string][]> {
    const name = `expressions-${++this.policies}`;
    const compiling = await this.createPolicy(name, expressions);
    if (compiling.length === 0) return [];
    await this.client.post(`${path}ybindings`, {
      apiVersion: `${group}/v1`,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata: { name },
      spec: { policyName: name, validationActions: ["Warn"] },
    });
    const warnings = await vi.waitFor(() => this.warnings(name), { timeout: 30_000, interval: 50 });
    return warnings.flatMap((warning): [string, string][] => {
      const [, index, text = ""] = /#(\d+)=([\s\S]*)"$/.exec(warning) ?? [];
      return index === undefined ? [] : [[compiling[Number(index)] ?? "", text.replace(/\\(["\\])/g, "$1")]];
    });
  }

  /** Creates a policy with the expressions that compile. */
  private async createPolicy(name: string, expressions: readonly string[]): Promise<readonly string[]> {
    if (expressions.length === 0) return [];
    const { status, body } = await this.client.reply("POST", `${path}ies`, { body: policy(name, expressions) });
    if (status === 201) return expressions;
    const causes: { readonly field: string }[] = body.details?.causes ?? [];
    const faulty = new Set(causes.map(({ field }) => Number(/validations\[(\d+)\]/.exec(field)?.[1])));
    const rest = expressions.filter((_, index) => !faulty.has(index));
    if (rest.length === expressions.length) throw new Error(`the policy is refused: ${JSON.stringify(body)}`);
    return this.createPolicy(name, rest);
  }

  /** @throws Error where the policy is not in force yet */
  private async warnings(name: string): Promise<readonly string[]> {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name } };
    const { headers } = await this.client.reply("POST", configMaps, { body, query: { dryRun: "All" } });
    const { warning } = headers;
    if (warning === undefined) throw new Error(`the policy ${name} is not in force`);
    return [warning].flat().map((text) => Buffer.from(text, "latin1").toString());
  }
}

const policy = (name: string, expressions: readonly string[]): object => ({
  apiVersion: `${group}/v1`,
  kind: "ValidatingAdmissionPolicy",
  metadata: { name },
  spec: {
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
    },
    matchConditions: [{ name: "ours", expression: `object.metadata.name == '${name}'` }],
    validations: expressions.map((expression, index) => ({
      expression: "false",
      message: `#${index}: the expression has no value`,
      messageExpression: `'#${index}=' + '%s'.format([${expression}])`,
    })),
  },
});
