import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { lowerFirst, systemReason } from "../base/wording.ts";
import type { TlsMaterial } from "./identity.ts";
import { configFault } from "./kubeconfig-file.ts";

/** PEM text, or the file that has it. The text counts where both are there. */
export interface Pem {
  readonly data: Buffer;
  /** Empty where there is none. */
  readonly file: string;
  /** The kubeconfig that says so; empty where none does. */
  readonly origin: string;
}

/** Where the TLS material of a connection comes from. */
export interface TlsSource {
  /** The authorities to trust; the system's where absent. */
  readonly ca?: Pem | undefined;
  readonly client?: { readonly certificate: Pem; readonly key: Pem } | undefined;
  /** The name to expect in the server's certificate; the host's where empty. */
  readonly serverName: string;
  /** The server's certificate is not verified. */
  readonly insecure: boolean;
}

/** Undefined where there is neither text nor file. */
export const pem = (data: Buffer, file: string, origin: string): Pem | undefined =>
  data.length > 0 || file ? { data, file, origin } : undefined;

/**
 * The TLS material of a connection. Its files are read again each time, because certificates rotate. While they cannot be
 * used, the last ones that could stay in use. Material that has not changed is the same object.
 */
export class TlsFiles {
  private readonly source: TlsSource;
  private current: { readonly texts: readonly string[]; readonly material: TlsMaterial } | undefined;

  constructor(source: TlsSource) {
    this.source = source;
  }

  /** @throws WatchfireError WF_KUBE_CONFIG while there never was any that could be used */
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

/** A PEM's text; empty where there is none. @throws WatchfireError WF_KUBE_CONFIG where its file cannot be read */
export async function textOf(pem: Pem | undefined): Promise<string> {
  if (!pem) return "";
  if (pem.data.length > 0) return pem.data.toString("latin1");
  return readFile(pem.file, "latin1").catch((cause) => {
    throw configFault({ what: `it cannot be read: ${systemReason(cause)}`, place: { file: pem.file }, cause });
  });
}

const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The certificates of a PEM text, without what else it holds: Go passes over what is none, where OpenSSL stops reading. */
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
 * Why a client certificate and a key cannot be used together; undefined where they can. No word of either is in it. OpenSSL
 * by itself takes a pair of two algorithms, and then sends no certificate.
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
