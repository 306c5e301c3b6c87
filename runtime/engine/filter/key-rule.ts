import {
  type ASTNode,
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
import { parseKey } from "./expression.ts";
import { type FieldPath, NamedFields, pathsOf } from "./named-fields.ts";
import { type HeldBack, wakesNobody } from "./reason.ts";

/** The number of keys that one object may wake: a change of it costs a row on disk for each. */
const mostKeys = 100;

/** The keys that a change wakes, each `namespace/name`; or why it wakes no key. */
export type MappedKeys = { readonly keys: readonly string[] } | { readonly heldBack: HeldBack };

/** The keys that an event with the object's current state would wake. */
export interface WakesNext {
  /** Each is `namespace/name`; or why it wakes no key. */
  readonly now: MappedKeys;
  /** Keys that the object mapped to when the trigger saw it last, and no longer does. */
  readonly left: readonly string[];
}

/** The input of a key rule: an object's JSON, and its namespace ("" for a cluster-scoped object). */
interface KeyedObject {
  readonly namespace: string;
  readonly body: Buffer;
}

/** Evaluates a trigger's `key`: maps an object to the keys that a change of it wakes. */
export class KeyOf {
  /** Whether it reads nothing but an object's metadata. */
  readonly readsMetadataAlone: boolean;
  /** Whether a change wakes every existing object. No keys are then recorded of the changed one. */
  readonly isForAll: boolean;
  private readonly fields: NamedFields;
  private readonly keys: (object: unknown, namespace: string) => readonly string[];

  private readonly account: LoopAccount | undefined;

  /**
   * @param account is charged for the time that evaluation takes
   * @throws ExpressionError for an expression that does not compile
   */
  constructor(rule: KeyRule, account?: LoopAccount) {
    this.account = account;
    account?.measures();
    this.isForAll = rule.type === "all";
    if (rule.type === "all") {
      this.readsMetadataAlone = true;
      this.fields = new NamedFields([]);
      this.keys = () => [];
      return;
    }
    if (rule.type === "owner") {
      this.readsMetadataAlone = true;
      this.fields = new NamedFields([["metadata", "ownerReferences"]]);
      this.keys = (object, namespace) => owners(object, rule).map((name) => `${namespace}/${name}`);
      return;
    }
    const { code, paths } = compiled(parseKey(rule.expression));
    this.readsMetadataAlone = paths.every(([first]) => first === "metadata");
    this.fields = new NamedFields(paths);
    this.keys = (object, namespace) => {
      const context = { meter: new Meter(expressionLimit), object, oldObject: () => null, slots: [] };
      return names(code(context)).map((name) => (name.includes("/") ? name : `${namespace}/${name}`));
    };
  }

  /** Returns the object's keys. Does not throw: an object without a value wakes no key, and the reason is returned. */
  of({ namespace, body }: KeyedObject): MappedKeys {
    if (this.isForAll) return { keys: [] };
    const began = this.account?.begin();
    try {
      const keys = [...new Set(this.keys(this.fields.read({ body }), namespace))];
      // The message must not quote the object, which may be a Secret.
      if (!keys.every(isKey)) return failed("its result is neither a name nor namespace/name");
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

/**
 * Returns what is wrong with the parsed CEL expression of a `key`, in words; `undefined` if it compiles. `object` is the part of
 * each object that is read.
 * @throws ExpressionError
 */
export function checkKeyExpression(expression: ASTNode, object: "Full" | "Metadata"): string | undefined {
  const { paths } = compiled(expression);
  if (paths.length === 0) return "the expression names nothing of `object`";
  const unread = object === "Full" ? undefined : paths.find(([first]) => first !== "metadata" && first !== "kind");
  return unread && `the expression reads ${unread[0] ?? "the whole object"}, but only metadata is read or kept`;
}

function compiled(ast: ASTNode): { readonly code: CompiledExpression; readonly paths: readonly FieldPath[] } {
  if (pathsOf(ast, "oldObject").length > 0) {
    throw new ExpressionError("WF_FILTER_CONDITION_TYPE", "reads oldObject: the state before wakes its own keys");
  }
  return { code: compile(ast), paths: pathsOf(ast, "object") };
}

const failed = (message: string): MappedKeys => ({ heldBack: { type: "keyError", message } });

/** Returns the names of the object's owners of a kind, in any of its versions. */
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

/** Whether a key consists of a namespace, or an empty one, and a name. */
function isKey(key: string): boolean {
  const [namespace = "", name = "", ...more] = key.split("/");
  return more.length === 0 && objectName.test(name) && (namespace === "" || dnsLabel.test(namespace));
}
