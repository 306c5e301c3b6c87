import type { FunctionManifest } from "../manifest/function.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";

/**
 * Returns the faults of permissions for everything. `rbac`, `deploy` and `doctor` refuse them, because no rule is made of a
 * wildcard. A runtime starts with them all the same, because somebody may have granted as much by hand.
 */
export function wildcardFaults({ permissions }: Pick<FunctionManifest, "permissions">): RuleFault[] {
  const faults: RuleFault[] = [];
  for (const [index, permission] of permissions.entries()) {
    const report = (field: "apiGroups" | "resources" | "resourceNames", at: number, what: string, hint?: string) => {
      if (at < 0) return;
      const path = ["spec", "permissions", index, field, at];
      faults.push({ code: "WF_RBAC_WILDCARD", path, what, ...(hint !== undefined && { hint }) });
    };
    const open = (values: readonly string[]) => values.findIndex((value) => value.includes("*"));
    const refused = "which `rbac` and `deploy` refuse";
    report("apiGroups", open(permission.apiGroups), `it asks for all API groups, ${refused}`);
    report("resources", open(permission.resources), `it asks for all resources, ${refused}`);
    report(
      "resourceNames",
      permission.resourceNames?.indexOf("*") ?? -1,
      `it asks for all names as if "*" were one, ${refused}; RBAC takes it for an object's own name`,
      "leave resourceNames out for objects of every name, or name them one by one",
    );
  }
  return faults;
}
