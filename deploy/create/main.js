#!/usr/bin/env node
import { createProject, ProjectError, readWishes } from "./command.ts";

try {
  await createProject(readWishes(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof ProjectError)) throw error;
  process.stderr.write(`create-watchfire: ${error.message}\n`);
  process.exitCode = 1;
}
