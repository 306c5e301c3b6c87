import {
  type CompiledExpression,
  compile,
  EvaluationError,
  ExpressionError,
  expressionLimit,
  firstLine,
  LimitExceeded,
  Meter,
} from "@watchfire/cel";
import { dnsLabel, objectName } from "../../kube/names.ts";
import type { KeyRule } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import { type FieldPath, NamedFields, pathsOf } from "./named-fields.ts";
import { parseKey } from "./parse-condition.ts";
import { type HeldBack, wakesNobody } from "./reason.ts";

/** Keys that one object may wake: a change of it costs a row on disk for each. */
const mostKeys = 100;

/** Whom a change wakes: keys as `namespace/name`, or why it wakes nobody. */
export type MappedKeys = { readonly keys: readonly string[] } | { readonly heldBack: HeldBack };

/** Whom an event with the object as it is now would wake. */
export interface WakesNext {
  /** `namespace/name` each, or why it wakes nobody. */
  readonly now: MappedKeys;
  /** Keys that the object counted for when the trigger saw it last, and counts for no more. */
  readonly left: readonly string[];
}

/** What keys are made of: an object's JSON, and the namespace that it is in ("" for none). */
interface KeyedObject {
  readonly namespace: string;
  readonly body: Buffer;
}

/** A trigger's `key`: from an object to the keys that a change of it wakes. */
export class KeyOf {
  /** Whether an object's metadata says all that it asks for. */
  readonly readsMetadataAlone: boolean;
  private readonly fields: NamedFields;
  private readonly keys: (object: unknown, namespace: string) => readonly string[];

  private readonly account: LoopAccount | undefined;

  /**
   * What it takes goes on `account`.
   * @throws ExpressionError for an expression that does not compile
   */
  constructor(rule: KeyRule, account?: LoopAccount) {
    this.account = account;
    account?.measures();
    this.readsMetadataAlone = rule.type === "owner";
    if (rule.type === "owner") {
      this.fields = new NamedFields([["metadata", "ownerReferences"]]);
      this.keys = (object, namespace) => owners(object, rule).map((name) => `${namespace}/${name}`);
      return;
    }
    const { code, paths } = compiled(rule.expression);
    this.fields = new NamedFields(paths);
    this.keys = (object, namespace) => {
      const context = { meter: new Meter(expressionLimit), object, oldObject: () => null, slots: [] };
      return names(code(context)).map((name) => (name.includes("/") ? name : `${namespace}/${name}`));
    };
  }

  /** Throws nothing: what has no value wakes nobody, and says why. */
  of({ namespace, body }: KeyedObject): MappedKeys {
    const began = this.account?.begin();
    try {
      const keys = [...new Set(this.keys(this.fields.read({ body }), namespace))];
      // The message holds nothing of the object, which may be a Secret.
      if (!keys.every(isKey)) return failed("it gives what is no name, and no namespace/name");
      if (keys.length > mostKeys) return failed(`it gives ${keys.length} names, more than ${mostKeys}`);
      return keys.length === 0 ? { heldBack: wakesNobody } : { keys };
    } catch (error) {
      const says = error instanceof EvaluationError || error instanceof LimitExceeded;
      return failed(says ? error.message : firstLine(error));
    } finally {
      if (began !== undefined) this.account?.end("keys", began);
    }
  }
}

/** What is wrong with the CEL expression of a `key`, in words; undefined where it compiles. `object`: what is read of each object. */
export function checkKeyExpression(expression: string, object: "Full" | "Metadata"): string | undefined {
  try {
    const { paths } = compiled(expression);
    if (paths.length === 0) return "the expression names nothing of `object`";
    const unread = object === "Full" ? undefined : paths.find(([first]) => first !== "metadata" && first !== "kind");
    return unread && `the expression reads ${unread[0] ?? "the whole object"}, but metadata alone is read or kept`;
  } catch (error) {
    if (error instanceof ExpressionError) return `the expression ${error.message}`;
    throw error;
  }
}

function compiled(expression: string): { readonly code: CompiledExpression; readonly paths: readonly FieldPath[] } {
  const ast = parseKey(expression);
  if (pathsOf(ast, "oldObject").length > 0) {
    throw new ExpressionError("WF_FILTER_CONDITION_TYPE", "reads oldObject: the state before wakes its own keys");
  }
  return { code: compile(ast), paths: pathsOf(ast, "object") };
}

const failed = (message: string): MappedKeys => ({ heldBack: { type: "keyError", message } });

/** The names of its owners of a kind, whichever version of it they name. */
function owners(
  object: unknown,
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
): string[] {
  const metadata = (object as { metadata?: { ownerReferences?: unknown } }).metadata;
  const references = Array.isArray(metadata?.ownerReferences) ? metadata.ownerReferences : [];
  return references
    .filter((it) => it?.kind === kind && groupOf(String(it.apiVersion)) === groupOf(apiVersion))
    .map(({ name }) => String(name));
}

const groupOf = (apiVersion: string): string => (apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "");

function names(value: unknown): string[] {
  const all = Array.isArray(value) ? value : [value];
  return all.map((name) => {
    if (typeof name !== "string") throw new Error("it yields something else than a name or a list of names");
    return name;
  });
}

/** Whether a key is an object's namespace, or none, and its name. */
function isKey(key: string): boolean {
  const [namespace = "", name = "", ...more] = key.split("/");
  return more.length === 0 && objectName.test(name) && (namespace === "" || dnsLabel.test(namespace));
}
