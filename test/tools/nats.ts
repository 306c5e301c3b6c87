import { onTestFinished } from "vitest";
import { NatsServer } from "./nats-server.ts";

/** A nats-server that runs until the test ends. @param args more of its command line */
export async function startNats(args: readonly string[] = []): Promise<NatsServer> {
  const server = await NatsServer.make(args);
  onTestFinished(() => server.remove());
  await server.start();
  return server;
}

/** The same for three servers that form a cluster. */
export async function startNatsCluster(): Promise<NatsServer[]> {
  const servers = await NatsServer.makeCluster();
  for (const server of servers) onTestFinished(() => server.remove());
  await Promise.all(servers.map((server) => server.start()));
  return servers;
}
