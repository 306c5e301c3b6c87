/** Who in this process runs a function: several slots may each have a shard of it. */
export class Assignees {
  private readonly byName = new Map<string, Set<object>>();

  enter(name: string, tenant: object): void {
    const tenants = this.byName.get(name) ?? new Set();
    this.byName.set(name, tenants.add(tenant));
  }

  /** Gives whether nobody is left: what the process has of the function may go. */
  leave(name: string, tenant: object): boolean {
    const tenants = this.byName.get(name);
    tenants?.delete(tenant);
    if (tenants && tenants.size > 0) return false;
    this.byName.delete(name);
    return true;
  }
}
