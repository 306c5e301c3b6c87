import type { KubeRequest, KubeResponse, KubeTransport } from "../../runtime/kube/transport.ts";

/** Records every request before it passes the request to another transport. */
export class RecordingTransport implements KubeTransport {
  readonly requests: KubeRequest[] = [];
  private inner: KubeTransport;

  constructor(inner: KubeTransport) {
    this.inner = inner;
  }

  get description(): string {
    return this.inner.description;
  }

  request(request: KubeRequest): Promise<KubeResponse> {
    this.requests.push(request);
    return this.inner.request(request);
  }

  json<T>(request: KubeRequest, limit?: number): Promise<T> {
    this.requests.push(request);
    return this.inner.json<T>(request, limit);
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  /** Sends all further requests to another transport. */
  async replace(inner: KubeTransport): Promise<void> {
    await this.inner.close();
    this.inner = inner;
  }

  /**
   * Number of reads of a whole collection, as a LIST or as a watch's initial events; the pages of one LIST count once.
   */
  lists(path: string): number {
    return this.requests.filter((request) => request.path === path && readsWhole(request)).length;
  }
}

function readsWhole({ method, query = {} }: KubeRequest): boolean {
  if (method !== "GET" || query.continue !== undefined || query.fieldSelector === "metadata.name=-") return false;
  return query.watch === undefined || query.sendInitialEvents !== undefined;
}
