import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { grants, isGranted, mayBeGranted, missingRule, type RequestAttributes } from "../../runtime/access/grants.ts";
import type { Permission } from "../../runtime/manifest/function.ts";
import { permissionSchema } from "../../runtime/manifest/schema.ts";

const verb = fc.constantFrom("get", "list", "create", "update", "patch", "delete");
const group = fc.constantFrom("", "apps", "my.domain");
const resource = fc.constantFrom("pods", "deployments", "myapps");
const subresource = fc.constantFrom("status", "scale");
const namespace = fc.constantFrom("a", "b", "true", "1");
const name = fc.constantFrom("x", "y", "system:node");

const demands: fc.Arbitrary<RequestAttributes> = fc.record(
  { group, resource, verb, subresource, namespace, name },
  { requiredKeys: ["group", "resource", "verb"] },
) as fc.Arbitrary<RequestAttributes>;
const some = (values: fc.Arbitrary<string>) => fc.array(values, { minLength: 1, maxLength: 3 });
const rules: fc.Arbitrary<Permission> = fc.record(
  {
    apiGroups: some(fc.oneof(group, fc.constant("*"))),
    resources: some(fc.oneof(resource, fc.constantFrom("*", "*/scale", "deployments/status", "pods/status"))),
    verbs: some(fc.oneof(verb, fc.constant("*"))),
    resourceNames: some(name),
    namespaces: some(namespace),
  },
  { requiredKeys: ["apiGroups", "resources", "verbs"] },
) as fc.Arbitrary<Permission>;

const rule = (more: Partial<Permission> = {}): Permission => ({
  apiGroups: ["apps"],
  resources: ["deployments"],
  verbs: ["get"],
  ...more,
});
const demand = (more: Partial<RequestAttributes> = {}): RequestAttributes => ({
  group: "apps",
  resource: "deployments",
  verb: "get",
  namespace: "a",
  name: "x",
  ...more,
});

describe("a grant", () => {
  it.each<[string, Permission, RequestAttributes, boolean]>([
    ["holds for what it names", rule(), demand(), true],
    ["holds for no other group", rule(), demand({ group: "" }), false],
    ["holds for no other resource", rule(), demand({ resource: "pods" }), false],
    ["holds for no other verb", rule(), demand({ verb: "delete" }), false],
    ["of a resource does not hold for its subresources", rule(), demand({ subresource: "scale" }), false],
    ["of a subresource does not hold for its resource", rule({ resources: ["deployments/scale"] }), demand(), false],
    [
      "of a subresource holds for it",
      rule({ resources: ["deployments/scale"] }),
      demand({ subresource: "scale" }),
      true,
    ],
    ["of */scale holds for every scale", rule({ resources: ["*/scale"] }), demand({ subresource: "scale" }), true],
    ["of */scale holds for no status", rule({ resources: ["*/scale"] }), demand({ subresource: "status" }), false],
    ["of * holds for subresources", rule({ resources: ["*"] }), demand({ subresource: "status" }), true],
    ["by name holds for that name", rule({ resourceNames: ["x"] }), demand(), true],
    ["by name holds for no other", rule({ resourceNames: ["x"] }), demand({ name: "y" }), false],
    ["in a namespace holds there", rule({ namespaces: ["a"] }), demand(), true],
    ["in a namespace does not hold elsewhere", rule({ namespaces: ["a"] }), demand({ namespace: "b" }), false],
  ])("%s", (_law, permission, asked, expected) => {
    expect(grants(permission, asked)).toBe(expected);
  });

  it("by name holds for no list and no POST, and for the creation of that name by an apply or a PUT", () => {
    const { name: _name, ...unnamed } = demand();
    const byName = rule({ resourceNames: ["x"], verbs: ["*"] });
    expect(grants(byName, { ...unnamed, verb: "list" })).toBe(false);
    expect(grants(byName, { ...unnamed, verb: "create" })).toBe(false);
    expect(grants(byName, { ...unnamed, verb: "create", name: "x" })).toBe(true);
    expect(grants(byName, { ...unnamed, verb: "create", name: "y" })).toBe(false);
  });

  it("in namespaces holds for nothing that lies in none: cluster-scoped objects, and all namespaces at once", () => {
    fc.assert(
      fc.property(rules, demands, (permission, { namespace: _namespace, ...asked }) => {
        expect(grants({ ...permission, namespaces: ["a"] }, asked)).toBe(false);
      }),
    );
  });

  it("never holds for less when a rule is widened or added", () => {
    fc.assert(
      fc.property(rules, rules, demands, (one, other, asked) => {
        if (!grants(one, asked)) return;
        expect(isGranted([other, one], asked)).toBe(true);
        expect(grants({ ...one, verbs: ["*"] }, asked)).toBe(true);
        expect(grants({ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }, asked)).toBe(true);
      }),
    );
  });

  it("is never missed by the look ahead of discovery", () => {
    fc.assert(
      fc.property(fc.array(rules), demands, (permissions, asked) => {
        if (isGranted(permissions, asked)) expect(mayBeGranted(permissions, asked)).toBe(true);
      }),
    );
  });

  it("that is missing is named as YAML that grants exactly that", () => {
    fc.assert(
      fc.property(demands, (asked) => {
        const [missing] = parse(missingRule(asked)) as unknown[];
        const permission = permissionSchema.parse(missing) as Permission;
        expect(grants(permission, asked)).toBe(true);
        for (const other of ["get", "delete"] as const) {
          if (other !== asked.verb) expect(grants(permission, { ...asked, verb: other })).toBe(false);
        }
        if (asked.namespace) expect(grants(permission, { ...asked, namespace: "other" })).toBe(false);
        if (asked.name) expect(grants(permission, { ...asked, name: "z" })).toBe(false);
      }),
    );
  });
});
