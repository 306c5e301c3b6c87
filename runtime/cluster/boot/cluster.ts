import { generateKeyPairSync, randomBytes } from "node:crypto";
import { forbidden } from "../api/status.ts";
import { Authenticator } from "../auth/authenticator.ts";
import { Authorizer, refusal } from "../auth/authorizer.ts";
import { refuseEscalation } from "../auth/escalation.ts";
import { Rbac } from "../auth/rbac.ts";
import { ServiceAccountTokens } from "../auth/service-account-tokens.ts";
import type { User } from "../auth/user.ts";
import { type Clock, systemClock } from "../clock.ts";
import { startControllers } from "../controllers/controllers.ts";
import { DiscoveryHandler } from "../discovery/discovery-handler.ts";
import { Registry } from "../kinds/registry/registry.ts";
import { ApiServer } from "../rest/api-server.ts";
import type { Backend } from "../rest/call.ts";
import { ResourceHandler } from "../rest/resource-handler.ts";
import { FileLock } from "../storage/file-lock.ts";
import { type Identity, StateFile } from "../storage/state-file.ts";
import { Store } from "../storage/store.ts";
import { writing } from "../storage/writing.ts";
import { specialResources } from "../virtual/special-resources.ts";
import { kubeconfigText, writePrivately } from "./kubeconfig.ts";
import { seed } from "./seed.ts";

/** Options of the embedded cluster. */
export interface ClusterOptions {
  /** The loopback port. Default: 0, which takes any free port. */
  port?: number;
  /** A file that keeps the state across restarts and kills. Default: the state is kept in memory only. */
  state?: string;
  /** A file for the administrator's kubeconfig, readable by its owner only. Default: no file is written. */
  kubeconfig?: string;
  /** Default: the system clock. */
  clock?: Clock;
  /**
   * Keeps a new object whose owners do not exist, for objects that are copied from another cluster with its uids. Default: false, such
   * an object is deleted.
   */
  keepOrphans?: boolean;
}

/** A Kubernetes API server in this process, for development and tests; never for production. */
export interface Cluster {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** PEM. */
  readonly caCertificate: string;
  /** A bearer token of a member of `system:masters`. */
  readonly adminToken: string;
  /** YAML with the certificates and the token embedded. */
  readonly kubeconfig: string;
  /** The resourceVersion of the newest write. */
  readonly revision: number;
  /** Drops all history: older resourceVersions and continue tokens become expired. */
  compact(): void;
  /** Ends watches cleanly and stops serving. */
  close(): Promise<void>;
}

/**
 * Starts the cluster; resolves once it serves.
 * @throws ClusterError if the port, the state file or the kubeconfig cannot be used
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { clock = systemClock, state: stateFile, kubeconfig: kubeconfigFile } = options;
  const { identity, restored, journal } = await openState(stateFile, clock);
  const store = new Store(clock, journal, restored);
  const registry = new Registry();
  const tokens = new ServiceAccountTokens(identity.tokenKey, store, clock);
  const authorizer = new Authorizer(new Rbac(store));
  const backend: Backend = {
    store,
    registry,
    clock,
    admit: (call, object) => refuseEscalation(authorizer, call, object),
    admitNew: (call) => authorizer.admitNew(call.user, call.type, call),
  };
  const authenticator = new Authenticator(identity.adminToken, tokens, (user, as) =>
    mayImpersonate(authorizer, user, as),
  );
  const resources = new ResourceHandler(backend, specialResources({ authenticator, authorizer, tokens, clock }));
  let port = 0;
  const discovery = new DiscoveryHandler(registry, () => `127.0.0.1:${port}`);
  const server = new ApiServer(identity, authenticator, authorizer, {
    resource: (...request) => resources.handle(...request),
    other: (...request) => discovery.handle(...request),
    compact: () => store.compact(),
  });
  const controllers = startControllers(backend, identity.ca, options.keepOrphans ?? false);
  try {
    seed(backend);
    controllers.settle();
    port = await server.listen(options.port ?? 0);
  } catch (error) {
    controllers.stop();
    store.close();
    throw error;
  }
  const url = `https://127.0.0.1:${port}`;
  const kubeconfig = kubeconfigText({ url, ca: identity.ca, token: identity.adminToken });
  if (kubeconfigFile !== undefined) writePrivately(kubeconfigFile, kubeconfig);
  return {
    url,
    caCertificate: identity.ca,
    adminToken: identity.adminToken,
    kubeconfig,
    get revision() {
      return store.revision;
    },
    compact: () => store.compact(),
    close: async () => {
      controllers.stop();
      store.close();
      await server.close();
    },
  };
}

/** Reads the state that survives a restart: the cluster's identity and its objects. */
async function openState(stateFile: string | undefined, clock: Clock) {
  if (stateFile === undefined) return { identity: await newIdentity(clock), restored: undefined, journal: undefined };
  const lock = FileLock.take(stateFile);
  try {
    const restored = writing(stateFile, () => StateFile.read(stateFile));
    const identity = restored?.identity ?? (await newIdentity(clock));
    const held = restored ?? { identity, revision: 1, records: [] };
    const journal = writing(stateFile, () => new StateFile(stateFile, lock, held));
    return { identity, restored, journal };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function newIdentity(clock: Clock): Promise<Identity> {
  // Loading the certificate library takes longer than the rest of the start, so only a cluster without certificates loads it.
  const { makeCertificates } = await import("../certificates.ts");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    ...(await makeCertificates(clock.now())),
    adminToken: randomBytes(24).toString("base64url"),
    tokenKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** Throws a 403 unless the user has the verb `impersonate` on the other user and on each of its groups. */
function mayImpersonate(authorizer: Authorizer, user: User, as: User): void {
  const need = (plural: string, name: string, namespace = "") => {
    const resource = { group: "", plural, subresource: "", namespace, name };
    const wanted = { verb: "impersonate", resource };
    if (!authorizer.allows(user, wanted)) throw forbidden(resource, name, refusal(user, wanted));
  };
  const [, , namespace, account] = as.name.startsWith("system:serviceaccount:") ? as.name.split(":") : [];
  if (namespace && account) need("serviceaccounts", account, namespace);
  else need("users", as.name);
  const implied = ["system:authenticated", "system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  for (const group of as.groups) if (!implied.includes(group)) need("groups", group);
}
