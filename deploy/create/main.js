#!/usr/bin/env node
import { help } from "../../runtime/cli/command.ts";
import { init } from "../../runtime/cli/init.ts";
import { createProject, ProjectError, readWishes } from "./command.ts";

const words = process.argv.slice(2);
try {
  if (words.includes("--help") || words.includes("-h")) process.stdout.write(help(init));
  else await createProject(readWishes(words));
} catch (error) {
  if (!(error instanceof ProjectError)) throw error;
  process.stderr.write(`create-watchfire: ${error.message}\n`);
  process.exitCode = 1;
}
