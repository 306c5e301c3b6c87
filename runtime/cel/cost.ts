import type { ASTNode } from "@marcbachmann/cel-js";
import { checkedTypeOf } from "./checked-type.ts";
import { macroOf } from "./comprehension.ts";
import { callCost, type Operand, perCharacter } from "./cost-functions.ts";
import {
  type EntrySize,
  exactly,
  most,
  plus,
  type Size,
  share,
  sumOf,
  times,
  union,
  unionOfEntries,
  unknownSize,
} from "./cost-size.ts";
import type { DeclaredType } from "./declared-type.ts";
import { namespaces } from "./functions.ts";
import { constantInt } from "./syntax.ts";

/** Base costs of a new list and a new map: common/cost.go of cel-go. */
const newList = 10;
const newMap = 30;

/** A macro's variable. */
interface Local {
  readonly path: readonly string[];
  readonly size?: Size | undefined;
}

/**
 * Estimates the maximum cost of an expression, in Kubernetes' units: `Cost` in checker/cost.go of cel-go, with the sizes that the
 * type of `self` allows. It has the same quirks, because the API server refuses a custom resource definition by it: a value that
 * is not reached by names from `self` has the size of `self`, and a value without a bound is infinite.
 */
export function estimateCost(ast: ASTNode, self: DeclaredType): number {
  return new CostEstimator(self).cost(ast);
}

class CostEstimator {
  private readonly self: DeclaredType;
  private readonly paths = new Map<ASTNode, readonly string[]>();
  private readonly sizes = new Map<ASTNode, Size>();
  private readonly entries = new Map<ASTNode, EntrySize>();
  private readonly locals = new Map<string, Local>();

  constructor(self: DeclaredType) {
    this.self = self;
  }

  cost(node: ASTNode): number {
    switch (node.op) {
      case "value":
        return 0;
      case "id":
        this.paths.set(node, this.locals.get(node.args)?.path ?? [node.args]);
        return 1;
      case ".": {
        const [of, name] = node.args;
        const cost = this.cost(of);
        this.paths.set(node, [...this.pathOf(of), name]);
        return plus(cost, ["map", "message", "param"].includes(kindOf(of)) ? 1 : 0);
      }
      case ".?":
        return plus(1, this.cost(node.args[0]));
      case "[]":
        return this.index(node, node.args);
      case "list":
        return this.list(node, node.args);
      case "map":
        return this.map(node, node.args);
      case "?:":
        return this.conditional(node, node.args);
      case "!_":
        // cel-go's parser removes two signs in a row.
        if (node.args.op === "!_" && node.args.start === node.start + 1) return this.cost(node.args.args);
        return plus(1, this.cost(node.args));
      case "-_":
        return constantInt(node) === undefined ? plus(1, this.cost(node.args)) : 0;
      case "||":
      case "&&":
        return plus(...node.args.map((each) => this.cost(each)));
      case "call":
        return this.call(node, node.args[0], undefined, node.args[1]);
      case "rcall":
        return this.macro(node) ?? this.call(node, ...node.args);
      default: {
        const cost = plus(...node.args.map((each) => this.cost(each)));
        return plus(cost, this.binary(node, node.args));
      }
    }
  }

  private index(node: ASTNode, [of, key]: readonly [ASTNode, ASTNode]): number {
    const cost = plus(1, this.cost(of), this.cost(key));
    const kind = kindOf(of);
    this.paths.set(node, [...this.pathOf(of), kind === "list" ? "@items" : "@values"]);
    this.note(node, this.entryOf(of)?.value);
    return cost;
  }

  private list(node: ASTNode, items: readonly ASTNode[]): number {
    const cost = plus(newList, ...items.map((item) => this.cost(item)));
    this.entries.set(node, { isList: true, key: exactly(1), value: this.unionOf(items) });
    return cost;
  }

  private map(node: ASTNode, entries: readonly (readonly [ASTNode, ASTNode])[]): number {
    const cost = plus(newMap, ...entries.flat().map((each) => this.cost(each)));
    const [keys, values] = [entries.map(([key]) => key), entries.map(([, value]) => value)];
    this.entries.set(node, { isList: false, key: this.unionOf(keys), value: this.unionOf(values) });
    return cost;
  }

  private unionOf(nodes: readonly ASTNode[]): Size {
    return nodes
      .map((each) => this.sizeOrUnknown(each))
      .reduce(union, nodes.length ? { min: most, max: 0 } : exactly(0));
  }

  private conditional(node: ASTNode, [test, yes, no]: readonly [ASTNode, ASTNode, ASTNode]): number {
    const cost = plus(this.cost(test), Math.max(this.cost(yes), this.cost(no)));
    this.sizes.set(node, union(this.sizeOrUnknown(yes), this.sizeOrUnknown(no)));
    const entry = unionOfEntries(this.entryOf(yes), this.entryOf(no));
    if (entry) this.entries.set(node, entry);
    return cost;
  }

  /** Returns the cost of an operator without its operands: of the most expensive overload for the operands' types. */
  private binary(node: ASTNode, operands: readonly [ASTNode, ASTNode]): number {
    const [left, right] = operands;
    const [one, other] = [this.sizeOrUnknown(left), this.sizeOrUnknown(right)];
    const types = operands.map(typeNameOf);
    const mayBe = (...names: readonly string[]) => types.every((name) => name === "dyn" || names.includes(name));
    const comparing = share(exactly(Math.min(one.max, other.max)), perCharacter);
    switch (node.op) {
      case "==":
        return (types[0] === types[1] ? fixedTypes.get(types[0] ?? "") : undefined) ?? comparing;
      case "!=":
        return comparing;
      case "<":
      case "<=":
      case ">":
      case ">=":
        return mayBe("string") || mayBe("bytes") ? Math.max(comparing, types.includes("dyn") ? 1 : 0) : 1;
      case "in":
        return types[1] === "map" ? 1 : other.max;
      case "+":
        return this.addition(node, left, right, mayBe);
      default:
        return 1;
    }
  }

  private addition(
    node: ASTNode,
    left: ASTNode,
    right: ASTNode,
    mayBe: (...names: readonly string[]) => boolean,
  ): number {
    const size = sumOf(this.sizeOrUnknown(left), this.sizeOrUnknown(right));
    const isText = mayBe("string") || mayBe("bytes");
    if (!isText && !mayBe("list")) return 1;
    this.sizes.set(node, size);
    const entry = unionOfEntries(this.entryOf(left), this.entryOf(right));
    if (entry) this.entries.set(node, entry);
    return isText ? share(size, perCharacter) : 1;
  }

  private call(node: ASTNode, name: string, receiver: ASTNode | undefined, args: readonly ASTNode[]): number {
    const [first] = args;
    if (!receiver && first && (name === "has" || name === "dyn")) {
      if (name === "has" && first.op === ".") return this.cost(first.args[0]);
      const cost = plus(1, this.cost(first));
      this.note(node, this.sizeOf(first));
      return cost;
    }
    const isNamespace = receiver?.op === "id" && namespaces.has(receiver.args) && !this.locals.has(receiver.args);
    const operands = receiver && !isNamespace ? [receiver, ...args] : args;
    const cost = plus(...operands.map((each) => this.cost(each)));
    const own = callCost(
      isNamespace ? `${receiver.args}.${name}` : name,
      operands.map((each) => this.operand(each)),
    );
    this.note(node, own.size ?? this.sizeOf(node));
    return plus(cost, own.cost);
  }

  private operand(node: ASTNode): Operand {
    const type = checkedTypeOf(node);
    const item = type?.kind === "list" && type.valueType;
    const path = this.pathOf(node);
    return {
      size: this.sizeOrUnknown(node),
      type: typeNameOf(node),
      item: item
        ? { type: item.name, size: (path.length > 0 && this.declared([...path, "@items"])) || unknownSize }
        : undefined,
      literal: constantInt(node),
    };
  }

  /** Returns the cost of a call that declares variables. `undefined` for other calls. */
  private macro(node: ASTNode): number | undefined {
    if (node.op !== "rcall") return undefined;
    const [name, receiver, args] = node.args;
    const [first, second] = args;
    if ((name === "optMap" || name === "optFlatMap") && first?.op === "id" && second) {
      const of = this.cost(receiver);
      const body = this.within([[first.args, { path: [] }]], () => this.cost(second));
      return plus(of, 1, Math.max(plus(name === "optMap" ? 1 : 0, newList, 1, of, body), 1));
    }
    const found = macroOf(name, args.length);
    if (!found) return undefined;
    const [kind, variables] = found;
    const range = this.cost(receiver);
    const [names, bodies] = [args.slice(0, variables).map((arg) => String(arg.args)), args.slice(variables)];
    const locals = this.loopVariables(receiver, variables);
    const costs = this.within(
      names.map((each, index) => [each, locals[index] ?? { path: [] }]),
      () => bodies.map((body) => ({ cost: this.cost(body), size: this.sizeOrUnknown(body) })),
    );
    const count = this.sizeOrUnknown(receiver);
    const { init, step, result } = stepOf(
      kind,
      costs.map(({ cost }) => cost),
    );
    if (kind === "list" || kind === "filter") {
      const item =
        kind === "filter"
          ? (locals[0]?.size ?? this.declared(locals[0]?.path ?? []) ?? unknownSize)
          : costs.at(-1)?.size;
      this.entries.set(node, { isList: true, key: exactly(1), value: union(exactly(0), item ?? unknownSize) });
    }
    this.sizes.set(node, kind === "list" || kind === "filter" || kind === "map" ? count : exactly(1));
    return plus(range, init, result, times(count.max, step));
  }

  private loopVariables(range: ASTNode, variables: 1 | 2): readonly Local[] {
    const entry = this.entryOf(range);
    const path = this.pathOf(range);
    const isList = entry ? entry.isList : kindOf(range) === "list";
    const key = { path: [...path, isList ? "@indices" : "@keys"], size: entry?.key };
    const value = { path: [...path, isList ? "@items" : "@values"], size: entry?.value };
    if (variables === 2) return [key, value];
    return [isList ? value : key];
  }

  private within<T>(locals: readonly (readonly [string, Local])[], estimate: () => T): T {
    const outer = locals.map(([name]) => [name, this.locals.get(name)] as const);
    for (const [name, local] of locals) this.locals.set(name, local);
    try {
      return estimate();
    } finally {
      for (const [name, local] of outer) {
        if (local) this.locals.set(name, local);
        else this.locals.delete(name);
      }
    }
  }

  private pathOf(node: ASTNode): readonly string[] {
    return (node.op === "id" ? this.locals.get(node.args)?.path : undefined) ?? this.paths.get(node) ?? [];
  }

  private entryOf(node: ASTNode): EntrySize | undefined {
    return this.entries.get(node);
  }

  private note(node: ASTNode, size: Size | undefined): void {
    if (size) this.sizes.set(node, size);
  }

  private sizeOrUnknown(node: ASTNode): Size {
    return this.sizeOf(node) ?? unknownSize;
  }

  private sizeOf(node: ASTNode): Size | undefined {
    const known = this.sizes.get(node) ?? literalSize(node) ?? this.declared(this.pathOf(node));
    if (known) return known;
    if (isScalar(checkedTypeOf(node))) return exactly(1);
    return node.op === "id" ? this.locals.get(node.args)?.size : undefined;
  }

  /** Returns the size that the schema allows at a path from `self`. The path's first name is ignored. */
  private declared(path: readonly string[]): Size | undefined {
    if (path.length === 0) return undefined;
    let type: DeclaredType | undefined = this.self;
    for (const name of path.slice(1)) {
      if (name === "@items" || name === "@values") type = type.element;
      else if (name === "@keys") type = type.name === "map" ? key : undefined;
      else type = type.fields?.get(name);
      if (!type) return undefined;
    }
    return { min: 0, max: type.mostElements };
  }
}

/** Kubernetes declares no length for a map's keys. */
const key: DeclaredType = { name: "string", mostElements: 0 };

/** Cost of `==` for Kubernetes' types. */
const fixedTypes: ReadonlyMap<string, number> = new Map([
  ["kubernetes.NamedFormat", 7],
  ["kubernetes.Quantity", 1],
  ["kubernetes.Semver", 1],
  ["net.CIDR", 1],
  ["net.IP", 1],
]);

/** Returns the costs of a macro before its loop, per item, and after it, from the costs of its bodies. */
function stepOf(kind: string, bodies: readonly number[]): { init: number; step: number; result: number } {
  const [first = 0, second] = bodies;
  /** With a filter, an item costs the test and the more expensive of the step and keeping the list unchanged. */
  const filtered = (own: number) =>
    second === undefined ? plus(first, own) : plus(first, Math.max(plus(second, own), 1));
  switch (kind) {
    case "all":
      return { init: 0, step: plus(first, 3), result: 1 };
    case "exists":
      return { init: 0, step: plus(first, 4), result: 1 };
    case "existsOne":
      return { init: 0, step: plus(first, 2), result: 2 };
    case "filter":
      return { init: newList, step: plus(first, newList + 3), result: 1 };
    case "map":
      return { init: newMap, step: filtered(3), result: 1 };
    default:
      return { init: newList, step: filtered(newList + 2), result: 1 };
  }
}

const kindOf = (node: ASTNode): string => checkedTypeOf(node)?.kind ?? "dyn";

/** Returns `list`, `map`, or the name of another type. */
function typeNameOf(node: ASTNode): string {
  const type = checkedTypeOf(node);
  return type?.kind === "list" || type?.kind === "map" ? type.kind : (type?.name ?? "dyn");
}

const scalars = /^(?:bool|int|uint|double|google\.protobuf\.(?:Timestamp|Duration))$/;

const isScalar = (type: ReturnType<typeof checkedTypeOf>): boolean =>
  type !== undefined && (type.kind === "optional" ? isScalar(type.valueType) : scalars.test(type.name));

function literalSize(node: ASTNode): Size | undefined {
  if (node.op === "list" || node.op === "map") return exactly(node.args.length);
  if (node.op !== "value") return constantInt(node) === undefined ? undefined : exactly(1);
  if (typeof node.args === "string") return exactly([...node.args].length);
  return exactly(node.args instanceof Uint8Array ? node.args.length : 1);
}
