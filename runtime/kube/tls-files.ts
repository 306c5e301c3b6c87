import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { lowerFirst, systemReason } from "../base/wording.ts";
import type { TlsMaterial } from "./identity.ts";
import { configFault } from "./kubeconfig-file.ts";

/** PEM text, or the file that contains it. If both are given, the text counts. */
export interface Pem {
  readonly data: Buffer;
  /** Empty if absent. */
  readonly file: string;
  /** The kubeconfig that defines it; empty if it comes from elsewhere. */
  readonly origin: string;
}

/** Source of the TLS material of a connection. */
export interface TlsSource {
  /** Authorities to trust; default: the system's. */
  readonly ca?: Pem | undefined;
  readonly client?: { readonly certificate: Pem; readonly key: Pem } | undefined;
  /** Name to expect in the server's certificate; if empty, the host's. */
  readonly serverName: string;
  /** Disables verification of the server's certificate. */
  readonly insecure: boolean;
}

/** Returns `undefined` if neither text nor file is given. */
export const pem = (data: Buffer, file: string, origin: string): Pem | undefined =>
  data.length > 0 || file ? { data, file, origin } : undefined;

/**
 * TLS material of a connection. Its files are read again each time, because certificates rotate. While they cannot be used, the
 * last usable ones stay in use. Unchanged material is the same object.
 */
export class TlsFiles {
  private readonly source: TlsSource;
  private current: { readonly texts: readonly string[]; readonly material: TlsMaterial } | undefined;

  constructor(source: TlsSource) {
    this.source = source;
  }

  /** @throws WatchfireError WF_KUBE_CONFIG if the files could never be used so far */
  async read(): Promise<TlsMaterial> {
    try {
      const { ca, client } = this.source;
      const texts = await Promise.all([textOf(ca), textOf(client?.certificate), textOf(client?.key)]);
      if (this.current?.texts.every((text, index) => text === texts[index])) return this.current.material;
      this.current = { texts, material: this.material(...texts) };
    } catch (error) {
      if (!this.current) throw error;
    }
    return this.current.material;
  }

  private material(ca: string, cert: string, key: string): TlsMaterial {
    const { source } = this;
    const authorities = source.ca && certificatesOf(ca);
    if (authorities === "") {
      throw configFault({
        what: "the certificate authority of the cluster holds no certificate",
        ...placeOf(source.ca),
      });
    }
    const reason = source.client && pairFault(cert, key);
    if (reason) {
      const what = `the client certificate and its key cannot be used: ${reason}`;
      throw configFault({ what, ...placeOf(source.client?.certificate) });
    }
    return {
      ...(authorities !== undefined && { ca: authorities, allowPartialTrustChain: true }),
      ...(source.client && { cert, key }),
      ...(source.serverName && { servername: source.serverName }),
      ...(source.insecure && { rejectUnauthorized: false }),
    };
  }
}

function placeOf(pem: Pem | undefined) {
  const file = pem?.data.length ? pem.origin : pem?.file;
  return file ? { place: { file } } : {};
}

/** Returns a PEM's text; empty if absent. @throws WatchfireError WF_KUBE_CONFIG if its file cannot be read */
export async function textOf(pem: Pem | undefined): Promise<string> {
  if (!pem) return "";
  if (pem.data.length > 0) return pem.data.toString("latin1");
  return readFile(pem.file, "latin1").catch((cause) => {
    throw configFault({ what: `it cannot be read: ${systemReason(cause)}`, place: { file: pem.file }, cause });
  });
}

const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Returns only the certificates of a PEM text: Go ignores other content, at which OpenSSL would stop reading. */
function certificatesOf(text: string): string {
  const blocks = text.match(certificateBlock) ?? [];
  return blocks.filter((block) => certificateOf(block) !== undefined).join("\n");
}

function certificateOf(block: string): X509Certificate | undefined {
  try {
    return new X509Certificate(block);
  } catch {
    return undefined;
  }
}

/**
 * Returns why a client certificate and a key cannot be used together; `undefined` if they can. The message quotes neither.
 * OpenSSL accepts a pair of different algorithms, and then sends no certificate.
 */
export function pairFault(cert: string, key: string): string | undefined {
  try {
    const [first = ""] = cert.match(certificateBlock) ?? [];
    if (!new X509Certificate(first).checkPrivateKey(createPrivateKey(key))) return "the key is another certificate's";
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return lowerFirst((error as Error).message);
  }
}
