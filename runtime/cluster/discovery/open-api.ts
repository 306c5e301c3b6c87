import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isFields } from "../api/object.ts";
import { PathNotFound } from "../api/status.ts";
import { customSchema } from "../crd/custom-schema.ts";
import { encodeJson } from "../exact-json.ts";
import type { Registry } from "../kinds/registry/registry.ts";
import type { Reply } from "../rest/respond.ts";
import { type CustomResource, type JsonObject, openApiV2, openApiV3, openApiV3Index } from "../schema/index.ts";
import { asksForMessage, messageMediaType, swaggerMessage } from "./swagger-message.ts";

/** A cached document, as it is sent. */
interface Made {
  /** The registry's version for which the document was made. */
  readonly version: number;
  readonly body: Buffer;
  readonly etag: string;
}

/** Serves `/openapi/v2` and `/openapi/v3`. A document is rebuilt only when the served types have changed. */
export class OpenApi {
  private readonly registry: Registry;
  private readonly made = new Map<string, Made>();

  constructor(registry: Registry) {
    this.registry = registry;
  }

  /** `parts` is the path below `/openapi`. Throws PathNotFound. */
  handle(request: IncomingMessage, reply: Reply, parts: readonly string[]): void {
    const path = parts.join("/");
    const asMessage = path === "v2" && asksForMessage.test(request.headers.accept ?? "");
    const { body, etag } = this.document(path, asMessage);
    const quoted = `"${etag}"`;
    reply.response.setHeader("ETag", quoted);
    reply.response.setHeader("Vary", "Accept-Encoding, Accept");
    if (request.headers["if-none-match"] === quoted) {
      reply.response.writeHead(304).end();
      return;
    }
    if ((request.url ?? "").includes("hash="))
      reply.response.setHeader("Expires", new Date(Date.UTC(2100, 0)).toUTCString());
    reply.bytes(200, [body], asMessage ? messageMediaType : undefined);
  }

  private document(path: string, asMessage: boolean): Made {
    const key = asMessage ? `${path} message` : path;
    const known = this.made.get(key);
    if (known?.version === this.registry.version) return known;
    const document = this.make(path);
    if (!document) throw new PathNotFound();
    const body = asMessage ? swaggerMessage(document) : Buffer.from(encodeJson(document));
    const etag = createHash("sha512").update(body).digest("hex").toUpperCase();
    const made = { version: this.registry.version, body, etag };
    this.made.set(key, made);
    return made;
  }

  private make(path: string): JsonObject | undefined {
    const customs = this.customResources();
    if (path === "v2") return openApiV2(customs);
    if (path === "v3") return openApiV3Index(customs);
    const match = /^v3\/(?:api\/(v1)|apis\/([^/]+\/[^/]+))$/.exec(path);
    const groupVersion = match?.[1] ?? match?.[2];
    return groupVersion === undefined ? undefined : openApiV3(groupVersion, customs);
  }

  private customResources(): CustomResource[] {
    return this.registry
      .all()
      .filter((type) => type.custom)
      .map((type) => {
        const schema = customSchema(type);
        return {
          group: type.group,
          version: type.version,
          kind: type.kind,
          listKind: type.listKind,
          plural: type.plural,
          namespaced: type.namespaced,
          subresources: { status: type.status === true, scale: type.scale !== undefined },
          openAPIV3Schema: (isFields(schema) ? schema : { type: "object" }) as JsonObject,
        };
      });
  }
}
