import { chmodSync } from "node:fs";
import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTls } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { makeCertificates } from "../../../runtime/cluster/certificates.ts";
import { folderOf } from "../../tools/folder.ts";

/** A request as a server saw it: its credentials and its form. */
export interface Seen {
  readonly path: string;
  readonly authorization: string | undefined;
  /** The common name of the client's certificate. */
  readonly certificate: string | undefined;
  /** The name that the client expects in the server's certificate, unless it is an address. */
  readonly serverName: string | undefined;
  readonly compressed: boolean;
  /** The headers that begin with `impersonate-`. */
  readonly impersonation: Readonly<Record<string, string>>;
}

/** An API server on https and one on http, which answer `/version` to every client, and an identity provider. */
export interface Site {
  /** `127.0.0.1:PORT`. */
  readonly https: string;
  readonly http: string;
  readonly port: number;
  /** PEM. The client uses the server's certificate, with the common name `kube-apiserver`. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  /** PEM of a key without a certificate. */
  readonly otherKey: string;
  /** Returns the requests since the last call. */
  take(): readonly Seen[];
  close(): void;
}

/** An id token that expires at `exp`, in seconds since 1970. */
export const idToken = (exp: number): string =>
  ["{}", JSON.stringify({ exp }), "s"].map((part) => Buffer.from(part).toString("base64url")).join(".");

/** The id token that the identity provider returns for the refresh token `r`. */
export const renewedIdToken = idToken(4_102_444_800);

export async function openSite(): Promise<Site> {
  const [{ ca, certificate, key }, other] = await Promise.all([
    makeCertificates(Date.now()),
    makeCertificates(Date.now()),
  ]);
  let seen: Seen[] = [];
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const path = (request.url ?? "").replace(/\?.*/, "");
    const reply = (status: number, body: object) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (path === "/idp/.well-known/openid-configuration") {
      reply(200, { token_endpoint: `https://${request.headers.host}/idp/token` });
    } else if (path === "/idp/token") {
      let form = "";
      request.on("data", (chunk) => (form += chunk));
      request.on("end", () => {
        const isKnown = new URLSearchParams(form).get("refresh_token") === "r" && form.includes("client_id=watchfire");
        reply(
          isKnown ? 200 : 400,
          isKnown ? { access_token: "a", token_type: "Bearer", id_token: renewedIdToken } : {},
        );
      });
    } else {
      note(request, path);
      reply(200, { major: "1", minor: "36", gitVersion: "v1.36.0" });
    }
  };
  const note = (request: IncomingMessage, path: string): void => {
    const { getPeerCertificate, servername } = request.socket as Partial<TLSSocket>;
    const headers = Object.entries(request.headersDistinct).filter(([name]) => name.startsWith("impersonate-"));
    seen.push({
      path,
      authorization: request.headers.authorization,
      certificate: getPeerCertificate?.call(request.socket)?.subject?.CN?.toString(),
      serverName: servername || undefined,
      compressed: String(request.headers["accept-encoding"]).includes("gzip"),
      impersonation: Object.fromEntries(headers.map(([name, values]) => [name, (values ?? []).join(", ")])),
    });
  };
  const tls = createTls({ cert: certificate, key, requestCert: true, rejectUnauthorized: false }, answer);
  const plain = createPlain(answer);
  const [port, plainPort] = [await listening(tls, "::"), await listening(plain, "127.0.0.1")];
  return {
    https: `127.0.0.1:${port}`,
    http: `127.0.0.1:${plainPort}`,
    port,
    ca,
    certificate,
    key,
    otherKey: other.key,
    take: () => {
      const taken = seen;
      seen = [];
      return taken;
    },
    close: () => {
      for (const server of [tls, plain]) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

const listening = (server: Server, host: string): Promise<number> =>
  new Promise((done) => server.listen(0, host, () => done((server.address() as AddressInfo).port)));

/** Writes a case's files into a new folder. Files named like a plugin are executable. */
export function folderOfCase(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = folderOf(files);
  for (const name of Object.keys(files)) {
    if (name.includes("plugin")) chmodSync(join(folder, name), 0o755);
  }
  return folder;
}
