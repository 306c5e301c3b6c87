#!/usr/bin/env node
// Stands for kubectl in tests: appends each call to `calls.jsonl` in the folder of the file that FAKE_KUBECTL names, and answers from that file.
import { appendFileSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";

const file = process.env.FAKE_KUBECTL;
const words = process.argv.slice(2);
const { pods, forbidden = [], ports, token } = JSON.parse(readFileSync(file, "utf8"));
appendFileSync(join(dirname(file), "calls.jsonl"), `${JSON.stringify({ pid: process.pid, words })}\n`);

const refuse = (what) => {
  process.stderr.write(`a warning\nError from server (Forbidden): ${what} is forbidden\n`);
  process.exit(1);
};
const namespace = words.find((word) => word.startsWith("--namespace="))?.split("=")[1];
const [command] = words.filter((word) => !word.startsWith("-"));
if (forbidden.includes(command)) refuse(command);
if (command === "get") {
  const isAll = words.includes("--all-namespaces");
  if (isAll && forbidden.includes("all")) refuse("pods");
  const release = /instance=(.*)/.exec(words.find((word) => word.startsWith("--selector=")))?.[1];
  const items = pods.filter(({ metadata }) => {
    if (release !== undefined && metadata.labels["app.kubernetes.io/instance"] !== release) return false;
    return isAll || metadata.namespace === (namespace ?? "own");
  });
  process.stdout.write(JSON.stringify({ items }));
} else if (command === "create") process.stdout.write("a-token-of-the-account\n");
else if (command === "exec") process.stdout.write(`${token}\n`);
else if (command === "port-forward") {
  const pod = words.find((word) => word.startsWith("pod/")).slice("pod/".length);
  const server = createServer((socket) => {
    const other = connect(ports[pod], "127.0.0.1");
    for (const end of [socket, other]) end.on("error", () => undefined);
    socket.pipe(other).pipe(socket);
  });
  server.listen(0, "127.0.0.1", () => {
    process.stdout.write(`Forwarding from 127.0.0.1:${server.address().port} -> 9464\n`);
  });
}
