import { type Context, defineHandler, listAll, type Triggers } from "@watchfire/sdk";
import type { V1ConfigMap, V1Namespace } from "@watchfire/sdk/kubernetes";
import { copiesOf, removeCopy, writeCopy } from "./copy.ts";
import { selectedNamespaces } from "./selection.ts";

export default defineHandler<Triggers<{ sources: V1ConfigMap; namespaces: V1Namespace }>>(async (event, ctx) => {
  if (event.trigger === "namespaces") return settleNamespace(ctx, event.object);
  return settleSource(ctx, event.object, event.type === "Deleted");
});

/** A source changed: it is copied where it should be, and taken away everywhere else. */
async function settleSource(ctx: Context, source: V1ConfigMap, gone: boolean): Promise<void> {
  const wanted = gone ? [] : await selectedNamespaces(ctx, source);
  if (!wanted) return; // the selector cannot be read: what is there stays until it is mended

  const failures = new Failures();
  for (const copy of await copiesOf(ctx.kube, source)) {
    if (!wanted.includes(copy.metadata?.namespace ?? "")) await failures.collect(removeCopy(ctx.kube, copy));
  }
  for (const namespace of wanted) await failures.collect(writeCopy(ctx, source, namespace));
  failures.throwFirst();
}

/** A namespace is new or its labels changed: it gets the copies that want to be in it, and loses the others. */
async function settleNamespace(ctx: Context, namespace: V1Namespace): Promise<void> {
  const name = namespace.metadata?.name ?? "";
  const failures = new Failures();
  const query = { apiVersion: "v1", kind: "ConfigMap", labelSelector: "sync.watchfire.dev/enabled=true" };
  for (const source of await listAll<V1ConfigMap>(ctx.kube, query)) {
    const wanted = await selectedNamespaces(ctx, source, name);
    if (!wanted) continue;
    if (wanted.includes(name)) await failures.collect(writeCopy(ctx, source, name));
    else {
      for (const copy of await copiesOf(ctx.kube, source, name)) await failures.collect(removeCopy(ctx.kube, copy));
    }
  }
  failures.throwFirst();
}

/** One namespace that refuses its copy must not keep the others from theirs. */
class Failures {
  private readonly errors: unknown[] = [];

  async collect(work: Promise<void>): Promise<void> {
    await work.catch((error) => this.errors.push(error));
  }

  throwFirst(): void {
    if (this.errors.length > 0) throw this.errors[0];
  }
}
