import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** A self-signed certificate for 127.0.0.1, in PEM; it is its own authority. */
export async function makeCertificate(): Promise<{ certificate: string; key: string }> {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-bench-tls-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"];
  const names = ["-subj", "/CN=watchfire-bench", "-addext", "subjectAltName=IP:127.0.0.1"];
  try {
    await promisify(execFile)("openssl", [...kind, ...names, "-keyout", key, "-out", cert]);
    return { certificate: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
  } finally {
    await rm(folder, { recursive: true });
  }
}
