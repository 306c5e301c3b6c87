// The watcher of kubernetes-fluent-client, which pepr uses, in this process, with a handler that does nothing.
import { pathToFileURL } from "node:url";

/**
 * The part of the package that this script uses. The package is not a dependency of the project, so its types are not available.
 */
interface FluentClient {
  K8s(model: unknown): { Watch(callback: (object: unknown, phase: string) => unknown): { start(): Promise<unknown> } };
  kind: { Pod: unknown };
}

const [total, entry = ""] = process.argv.slice(2);
const { K8s, kind }: FluentClient = await import(pathToFileURL(entry).href);

let seen = 0;
await K8s(kind.Pod)
  .Watch(async (_object, phase) => {
    if (phase !== "BOOKMARK" && ++seen === Number(total)) process.send?.({ type: "handled" });
  })
  .start();
process.on("disconnect", () => process.exit());
