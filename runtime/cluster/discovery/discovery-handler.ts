import type { IncomingMessage } from "node:http";
import { PathNotFound } from "../api/status.ts";
import type { Registry } from "../kinds/registry/registry.ts";
import type { Reply } from "../rest/respond.ts";
import { aggregated, coreVersions, groupDocument, groupList, resourceList } from "./documents.ts";
import { OpenApi } from "./open-api.ts";

/** The Kubernetes release whose API this cluster serves. */
const version = {
  major: "1",
  minor: "36",
  emulationMajor: "1",
  emulationMinor: "36",
  minCompatibilityMajor: "1",
  minCompatibilityMinor: "35",
  gitVersion: "v1.36.3",
  gitCommit: "watchfire",
  gitTreeState: "clean",
  buildDate: "2026-01-01T00:00:00Z",
  goVersion: `node${process.versions.node}`,
  compiler: "node",
  platform: `${process.platform}/${process.arch}`,
};

const health = new Set(["livez", "readyz", "healthz"]);

/** Serves the paths that are not resources: discovery, OpenAPI, version and health. */
export class DiscoveryHandler {
  private readonly registry: Registry;
  private readonly openApi: OpenApi;
  private readonly address: () => string;

  /** `address` is the server's `host:port`. */
  constructor(registry: Registry, address: () => string) {
    this.registry = registry;
    this.openApi = new OpenApi(registry);
    this.address = address;
  }

  /** Throws PathNotFound if there is no document at the path. */
  handle(request: IncomingMessage, reply: Reply, pathname: string): void {
    const parts = pathname.split("/").filter((part) => part !== "");
    const [first = ""] = parts;
    const alone = parts.length === 1;
    if (health.has(first)) this.health(reply, parts.slice(1), request);
    else if (first === "version" && alone) reply.json(200, version);
    else if (first === "openapi") this.openApi.handle(request, reply, parts.slice(1));
    else if ((first === "api" || first === "apis") && alone) this.root(request, reply, first === "api");
    else {
      const document = this.document(parts);
      if (!document) throw new PathNotFound();
      reply.json(200, document);
    }
  }

  private document([first = "", second = "", third = "", ...rest]: string[]): unknown {
    if (rest.length > 0) return undefined;
    if (first === "") return this.paths();
    if (first === "api" && third === "") return resourceList(this.registry, "", second);
    if (first !== "apis") return undefined;
    return third === "" ? groupDocument(this.registry, second) : resourceList(this.registry, second, third);
  }

  private root(request: IncomingMessage, reply: Reply, core: boolean): void {
    const wanted = /g=apidiscovery\.k8s\.io;v=(v2|v2beta1);as=APIGroupDiscoveryList/.exec(
      request.headers.accept ?? "",
    )?.[1];
    reply.response.setHeader("Vary", "Accept");
    if (!wanted) {
      reply.json(200, core ? coreVersions(this.address()) : groupList(this.registry));
      return;
    }
    const { document, etag } = aggregated(this.registry, core, wanted);
    const quoted = `"${etag}"`;
    reply.response.setHeader("ETag", quoted);
    if (request.headers["if-none-match"] === quoted) {
      reply.response.writeHead(304).end();
      return;
    }
    reply.json(200, document, `application/json;g=apidiscovery.k8s.io;v=${wanted};as=APIGroupDiscoveryList`);
  }

  private health(reply: Reply, checks: string[], request: IncomingMessage): void {
    const verbose = (request.url ?? "").includes("verbose");
    if (checks.length > 1) throw new PathNotFound();
    reply.text(200, verbose ? "[+]ping ok\n[+]etcd ok\nreadyz check passed\n" : "ok");
  }

  private paths(): unknown {
    const groupVersions = this.registry.all().filter(({ group }) => group !== "");
    const found = new Set([
      "/api",
      "/api/v1",
      "/apis",
      "/healthz",
      "/livez",
      "/openapi/v2",
      "/openapi/v3",
      "/readyz",
      "/version",
    ]);
    for (const { group, version: one } of groupVersions) found.add(`/apis/${group}`).add(`/apis/${group}/${one}`);
    return { paths: [...found].sort() };
  }
}
