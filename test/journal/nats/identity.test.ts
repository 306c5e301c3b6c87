// The certificates that are accepted: TLS to a NATS with a name, and to one that is addressed by its IP.
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PeerCertificate, TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { makeCertificates } from "../../../runtime/cluster/certificates.ts";
import { identityCheck, Nats } from "../../../runtime/journal/nats/connection.ts";

/** The name that Node uses for a server without a name. */
const unnamed = "localhost";
const vouchingFor = (subjectaltname: string) => ({ subject: { CN: "nats" }, subjectaltname }) as PeerCertificate;

test.each([
  [["tls://10.0.0.1:4222"], "IP Address:10.0.0.1"],
  [["tls://10.0.0.1:4222", "10.0.0.2:4222"], "IP Address:10.0.0.2"],
  [["tls://[fd00::1]:4222"], "IP Address:fd00::1"],
  [["tls://localhost:4222"], "DNS:localhost"],
])("a server given as %s is taken with a certificate for %s", (servers, names) => {
  expect(identityCheck(servers)(unnamed, vouchingFor(names))).toBeUndefined();
});

test.each([
  [["tls://10.0.0.1:4222"], unnamed, "DNS:localhost"],
  [["tls://10.0.0.1:4222"], unnamed, "IP Address:10.0.0.2"],
  [["tls://nats.nats:4222", "tls://10.0.0.1:4222"], "nats.nats", "IP Address:10.0.0.1"],
  [["tls://nats.nats:4222"], unnamed, "DNS:nats.nats"],
])("of %s the server %s is not taken with a certificate for %s", (servers, name, names) => {
  expect(identityCheck(servers)(name, vouchingFor(names))).toBeInstanceOf(Error);
});

// Only Linux has further loopback addresses, for which there is no certificate.
test.skipIf(process.platform !== "linux")(
  "a server at an address is not taken with localhost's certificate",
  async () => {
    const { ca, certificate, key } = await makeCertificates(Date.now());
    const folder = mkdtempSync(join(tmpdir(), "watchfire-ca-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "ca.crt"), ca);
    const server = createServer((socket) => {
      socket.write(`INFO ${JSON.stringify({ server_id: "a", version: "2.15.2", proto: 1, tls_required: true })}\r\n`);
      new TLSSocket(socket, { isServer: true, cert: certificate, key }).on("error", () => {});
    });
    onTestFinished(() => void server.close());
    await once(server.listen(0, "127.0.0.2"), "listening");
    const url = `tls://127.0.0.2:${(server.address() as AddressInfo).port}`;
    const log = { info: () => {}, warn: () => {} };
    const made = Nats.connect({ servers: [url], tls: { ca: join(folder, "ca.crt") }, name: "identity", log });
    await expect(made).rejects.toMatchObject({
      code: "WF_CHECKPOINT_NATS_AWAY",
      message: expect.stringContaining("127.0.0.2 is not in the cert's list"),
    });
  },
);
