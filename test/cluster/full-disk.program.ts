// Fills the given state file until no more fits, and prints the answers. Its parent limits the size of files.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { startCluster } from "@watchfire/cluster";

const [, , state = ""] = process.argv;
const cluster = await startCluster({ state });
const headers = { authorization: `Bearer ${cluster.adminToken}`, "content-type": "application/json" };

async function create(path: string, object: unknown): Promise<{ code: number | undefined; message?: string }> {
  const sent = request(`${cluster.url}/api/v1/${path}`, { method: "POST", ca: cluster.caCertificate, headers });
  sent.end(JSON.stringify(object));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return { code: response.statusCode, message: JSON.parse(Buffer.concat(pieces).toString()).message };
}
const configMap = (name: string, length: number) =>
  create("namespaces/default/configmaps", { metadata: { name }, data: { text: "x".repeat(length) } });

const made: string[] = [];
let refused: Awaited<ReturnType<typeof create>> | undefined;
for (let number = 0; number < 100 && !refused; number++) {
  const answer = await configMap(`large-${number}`, 80_000);
  if (answer.code === 201) made.push(`large-${number}`);
  else refused = answer;
}
const small = await configMap("small", 10);
if (small.code === 201) made.push("small");
await cluster.close();
process.stdout.write(JSON.stringify({ made, refused }));
