import { randomInt } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RequestInfo } from "../api/request-info.ts";
import { ApiError, fault, invalid, methodNotAllowed, notFound, type Status } from "../api/status.ts";
import type { User } from "../auth/user.ts";
import type { Registry } from "../kinds/registry/registry.ts";
import type { ResourceType } from "../kinds/resource-type.ts";
import { asJson } from "../kinds/shape.ts";
import { Revision } from "../storage/revision.ts";
import { admitFields } from "./admission.ts";
import { type Body, objectOf, parseBody, readBody } from "./body.ts";
import { type Backend, type Call, callKey, type FieldValidation } from "./call.ts";
import { create, kept } from "./create.ts";
import { deleteOptions, deletionAnswer, remove, removeAll } from "./delete.ts";
import { duplicateFields } from "./duplicate-fields.ts";
import { fresh, list } from "./list.ts";
import { listOptions, revisionOf, truth } from "./list-options.ts";
import { type Accepted, negotiate } from "./negotiation.ts";
import { patch } from "./patch.ts";
import { Representation } from "./representation.ts";
import type { Reply } from "./respond.ts";
import { update } from "./update.ts";
import { Watcher } from "./watch.ts";

/**
 * Lifetime of a watch without timeoutSeconds: a random one between 30 and 60 minutes, in seconds (`MinRequestTimeout`,
 * handlers/get.go).
 */
const watchLifetime = { least: 1800, most: 3600 };

/** Handler of a subresource that is not the object itself, such as `scale`, `token` or `eviction`. */
export type Subresource = (
  call: Call,
  verb: string,
  body: () => Promise<Body>,
) => Promise<{ code: number; value: unknown }>;

/** A request with its parsed parts. */
interface Asked {
  readonly type: ResourceType;
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  readonly user: User;
  readonly request: IncomingMessage;
  readonly reply: Reply;
}

/** Serves the resources: every verb on objects and their status. */
export class ResourceHandler {
  private readonly backend: Backend;
  private readonly special: ReadonlyMap<string, Subresource>;

  /** `special` is keyed `<plural>/<subresource>`, or `/<subresource>` for any resource, or `<plural>.<group>` for a virtual resource. */
  constructor(backend: Backend, special: ReadonlyMap<string, Subresource>) {
    this.backend = backend;
    this.special = special;
  }

  private get registry(): Registry {
    return this.backend.registry;
  }

  async handle(
    request: IncomingMessage,
    reply: Reply,
    info: RequestInfo,
    query: URLSearchParams,
    user: User,
  ): Promise<void> {
    const type = this.registry.find(info.group, info.version, info.resource);
    if (!type) throw new ApiError(404, "NotFound", "the server could not find the requested resource", {});
    const call = this.call({ type, info, query, user, request, reply });
    const subresource = this.subresource(type, info);
    if (subresource) {
      const { code, value } = await subresource(call, info.verb, () => readBody(request));
      return reply.json(code, value);
    }
    if (info.subresource !== "" && !(info.subresource === "status" && type.status)) throw unknownPath();
    if (type.namespaced && info.namespace === "" && !["list", "watch"].includes(info.verb)) throw methodNotAllowed();
    if (!type.namespaced && info.namespace !== "" && info.resource !== "namespaces") throw unknownPath();
    const onCollection = ["create", "list", "deletecollection"].includes(info.verb);
    if (!type.verbs.includes(info.verb) || (info.verb !== "watch" && onCollection !== (info.name === "")))
      throw methodNotAllowed();
    const accepted = negotiate(request.headers.accept);
    await this.serve(call, info.verb, request, reply, accepted);
  }

  private subresource(type: ResourceType, info: RequestInfo): Subresource | undefined {
    if (info.subresource === "") return this.special.get(`${type.plural}.${type.group}`);
    if (info.subresource === "scale") return type.scale && this.special.get("/scale");
    return this.special.get(`${type.plural}/${info.subresource}`);
  }

  private call({ type, info, query, user, request, reply }: Asked): Call {
    return {
      backend: this.backend,
      type,
      namespace: type.namespaced ? info.namespace : "",
      name: info.name,
      subresource: info.subresource,
      user,
      query,
      manager: managerOf(query, request, info.verb),
      dryRun: dryRunOf(query),
      fieldValidation: fieldValidationOf(query),
      warnings: reply.warnings,
    };
  }

  private async serve(
    call: Call,
    verb: string,
    request: IncomingMessage,
    reply: Reply,
    accepted: Accepted,
  ): Promise<void> {
    const show = this.representation(call, accepted);
    const answer = (code: number, { object, revision }: Revision) =>
      revision === 0 || accepted.form === "table" || call.dryRun
        ? reply.json(code, show.one(object), accepted.contentType)
        : reply.bytes(code, [show.bytes(new Revision(revision, object))], accepted.contentType);
    switch (verb) {
      case "get":
        return this.get(call, reply, show, accepted);
      case "list":
        return this.list(call, reply, show, accepted);
      case "watch":
        return this.watch(call, reply, show, accepted);
      case "create": {
        const object = await this.read(call, request);
        return answer(201, create(call, object));
      }
      case "update": {
        const object = await this.read(call, request);
        const { revision, created } = update(call, kept(call, asJson(object)));
        return answer(created ? 201 : 200, revision);
      }
      case "patch": {
        const body = await readBody(request);
        const { revision, created } = patch(call, body, truth(call.query.get("force") ?? "false"));
        return answer(created ? 201 : 200, revision);
      }
      case "delete": {
        const options = deleteOptions(await optionalBody(request), call.query);
        const outcome = remove(call, options);
        const result: Revision | Status = deletionAnswer(call, outcome);
        if (!(result instanceof Revision)) return reply.status(result);
        return answer(!outcome.gone && options.answers202 ? 202 : 200, result);
      }
      default: {
        const selection = listOptions(call.query, call.type, false);
        const removed = removeAll(call, selection, deleteOptions(await optionalBody(request), call.query));
        const metadata = { resourceVersion: String(this.backend.store.revision) };
        return reply.bytes(200, show.list(removed, metadata), accepted.contentType);
      }
    }
  }

  private async read(call: Call, request: IncomingMessage) {
    const body = await readBody(request);
    const object = objectOf(body, call.type);
    const duplicates = call.fieldValidation === "Ignore" ? [] : duplicateFields(body);
    return admitFields(call, object, duplicates);
  }

  private representation(call: Call, accepted: Accepted): Representation {
    const include = call.query.get("includeObject") ?? "Metadata";
    return new Representation(call.type, accepted.form, () => this.backend.clock.now(), include);
  }

  private async get(call: Call, reply: Reply, show: Representation, accepted: Accepted): Promise<void> {
    const asked = revisionOf(call.query.get("resourceVersion") ?? "") ?? 0;
    if (asked > 0) await fresh(this.backend.store, asked);
    const entry = this.backend.store.get(call.type.storage, callKey(call));
    if (!entry) throw notFound(call.type, call.name);
    reply.bytes(200, [show.bytes(entry)], accepted.contentType);
  }

  private async list(call: Call, reply: Reply, show: Representation, accepted: Accepted): Promise<void> {
    const options = listOptions(call.query, call.type, false);
    const page = await list(this.backend.store, call.type, call.namespace, options);
    reply.bytes(200, show.list(page.items, page.metadata), accepted.contentType);
  }

  private async watch(call: Call, reply: Reply, show: Representation, accepted: Accepted): Promise<void> {
    const options = listOptions(call.query, call.type, true);
    const named =
      call.name === ""
        ? []
        : [
            {
              read: (object: { metadata: { name?: string } }) => object.metadata.name ?? "",
              label: "metadata.name",
              value: call.name,
              equal: true,
            },
          ];
    const seconds = options.timeoutSeconds || randomInt(watchLifetime.least, watchLifetime.most);
    const { store, clock } = this.backend;
    reply.stream(accepted.contentType);
    const watcher = new Watcher(
      {
        store,
        clock,
        collection: store.collection(call.type.storage),
        prefix: call.namespace === "" ? "" : `${call.namespace}/`,
        options: { ...options, fields: [...options.fields, ...named] },
        // A negative time is over at once.
        lifetimeMs: Math.max(0, seconds) * 1000,
        representation: show,
      },
      reply.response,
    );
    await watcher.start();
  }
}

const unknownPath = () => new ApiError(404, "NotFound", "the server could not find the requested resource", {});

async function optionalBody(request: IncomingMessage): Promise<unknown> {
  const body = await readBody(request);
  return body.bytes.length === 0 ? undefined : parseBody(body);
}

/** Maximum length of a field manager's name, in characters (`FieldManagerMaxLength`). */
const managerLimit = 128;

/** Kinds of the options by verb. */
const optionsKinds: Readonly<Record<string, string>> = { patch: "PatchOptions", update: "UpdateOptions" };

function managerOf(query: URLSearchParams, request: IncomingMessage, verb: string): string {
  const given = query.get("fieldManager");
  if (given && Buffer.byteLength(given) > managerLimit)
    throw invalid({ group: "meta.k8s.io", kind: optionsKinds[verb] ?? "CreateOptions" }, "", [
      fault.tooLong("fieldManager", managerLimit),
    ]);
  if (given) return given;
  return (request.headers["user-agent"] ?? "unknown").split("/")[0]?.slice(0, managerLimit) || "unknown";
}

function dryRunOf(query: URLSearchParams): boolean {
  const values = query.getAll("dryRun").filter((value) => value !== "");
  if (values.every((value) => value === "All")) return values.length > 0;
  throw invalid({ group: "meta.k8s.io", kind: "CreateOptions" }, "", [fault.unsupported("dryRun", values, ["All"])]);
}

function fieldValidationOf(query: URLSearchParams): FieldValidation {
  const value = query.get("fieldValidation");
  if (value === null || value === "") return "Warn";
  if (value === "Strict" || value === "Warn" || value === "Ignore") return value;
  throw invalid({ group: "meta.k8s.io", kind: "CreateOptions" }, "", [
    fault.unsupported("fieldValidation", value, ["", "Ignore", "Strict", "Warn"]),
  ]);
}
