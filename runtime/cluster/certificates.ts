import { webcrypto } from "node:crypto";
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

/** A cluster's keys and certificates, in PEM. */
interface Certificates {
  ca: string;
  certificate: string;
  key: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
/** Validity of the certificates: ten years in milliseconds, so that an old kubeconfig keeps working. */
const lifetimeMs = 10 * 365 * 24 * 3600 * 1000;
/** The certificates are valid from an hour ago, so that clients whose clock is slightly behind accept them. */
const leewayMs = 3_600_000;

/** Creates a certificate authority and a certificate for a server on loopback, signed by it. */
export async function makeCertificates(now: number): Promise<Certificates> {
  x509.cryptoProvider.set(webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0]);
  const [authority, server] = await Promise.all([newKeys(), newKeys()]);
  const notBefore = new Date(now - leewayMs);
  const notAfter = new Date(now + lifetimeMs);
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: "CN=watchfire-development-ca",
    notBefore,
    notAfter,
    keys: authority,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: "02",
    subject: "CN=kube-apiserver",
    issuer: ca.subject,
    notBefore,
    notAfter,
    publicKey: server.publicKey,
    signingKey: authority.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        { type: "ip", value: "127.0.0.1" },
        { type: "ip", value: "::1" },
        { type: "dns", value: "localhost" },
        { type: "dns", value: "kubernetes" },
        { type: "dns", value: "kubernetes.default.svc" },
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", server.privateKey), "PRIVATE KEY");
  return { ca: `${ca.toString("pem")}\n`, certificate: `${certificate.toString("pem")}\n`, key: `${key}\n` };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]) as Promise<webcrypto.CryptoKeyPair>;
}
