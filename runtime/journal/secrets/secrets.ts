import { z } from "zod";
import { WatchfireError } from "../../base/errors.ts";
import { ApiError } from "../../kube/api-error.ts";
import { resourcePath } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";

const resource = { group: "", version: "v1", plural: "secrets", namespaced: true } as const;

/** Maximum size of a response, in bytes. A Secret holds 1 MiB (`core/v1` MaxSecretSize), and base64 adds a third. */
const objectLimit = 2 * 1024 * 1024;
const requestMs = 10_000;

const secretSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().min(1) }),
  data: z.record(z.string(), z.string()).nullish(),
});

/** The last known version of a Secret. */
export interface Secret {
  readonly resourceVersion: string;
  readonly data: ReadonlyMap<string, Buffer>;
  readonly object: z.infer<typeof secretSchema>;
}

/** Reads and writes Secrets by name. Never creates one. */
export class Secrets {
  private readonly transport: KubeTransport;
  private readonly namespace: string;

  constructor(transport: KubeTransport, namespace: string) {
    this.transport = transport;
    this.namespace = namespace;
  }

  /**
   * Reads a Secret.
   * @throws WatchfireError WF_CHECKPOINT_SECRETS if it does not exist or may not be read; what the transport throws
   */
  async read(name: string): Promise<Secret> {
    const path = resourcePath(resource, this.namespace, name);
    return this.described("get", name, async () =>
      readSecret(await this.transport.json<unknown>({ method: "GET", path, timeoutMs: requestMs }, objectLimit)),
    );
  }

  /** Replaces all data of a Secret. Returns "conflict" if it has changed since. */
  async write(name: string, { object }: Secret, data: Readonly<Record<string, Buffer>>): Promise<Secret | "conflict"> {
    const path = resourcePath(resource, this.namespace, name);
    const encoded = Object.entries(data).map(([key, bytes]) => [key, bytes.toString("base64")]);
    const body = JSON.stringify({ apiVersion: "v1", kind: "Secret", ...object, data: Object.fromEntries(encoded) });
    return this.described("update", name, async () => {
      try {
        const written = await this.transport.json<unknown>(
          { method: "PUT", path, body, timeoutMs: requestMs },
          objectLimit,
        );
        return readSecret(written);
      } catch (error) {
        if (error instanceof ApiError && error.status === 409) return "conflict";
        throw error;
      }
    });
  }

  private async described<T>(verb: string, name: string, request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 403)) throw error;
      const why = error.status === 404 ? "is not there" : `may not be used (${verb})`;
      const what = `the Secret ${name} in namespace ${this.namespace} ${why}`;
      throw new WatchfireError("WF_CHECKPOINT_SECRETS", { what, cause: error });
    }
  }
}

function readSecret(object: unknown): Secret {
  const secret = secretSchema.parse(object);
  const data = new Map(Object.entries(secret.data ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64")]));
  return { resourceVersion: secret.metadata.resourceVersion, data, object: secret };
}
