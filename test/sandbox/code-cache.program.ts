// Creates isolates with a bootstrap script that calls many functions, with one V8 flag and then with another. Prints the CPU
// times of each as two lists, in milliseconds.
import { IsolateFactory } from "../../runtime/sandbox/executor/isolate.ts";
import { CompilerPacing } from "../../runtime/v8/compiler-pacing.ts";

const body = Array.from(
  { length: 40 },
  (_, line) => `if (value === ${line}) value = [value, { line: ${line} }].length;`,
);
const called = (no: number) => `function called${no}(value) { ${body.join(" ")} return value; } called${no}(-1);`;
const doors = ["pump", "drain", "blame", "loaded", "begin"].map((name) => `${name}() {}`).join(", ");
const functions = Array.from({ length: 1_000 }, (_, no) => called(no)).join("\n");
const factory = new IsolateFactory(`(() => {\n${functions}\n__watchfire_executor = { ${doors} };\n})();`, "bootstrap");

const tierUp = new CompilerPacing();
const times = [false, true].map((isBusy) => {
  tierUp.look(isBusy);
  return Array.from({ length: 8 }, () => {
    const before = process.cpuUsage();
    factory.make({ memoryMb: 64, env: "{}", refused: "keys" }, () => process.exit(1));
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
});
process.stdout.write(JSON.stringify(times));
process.exit(0);
